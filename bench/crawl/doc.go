// Package crawl measures what Figure 7 of the Percolator paper shows: how long it takes until a crawled document is visible in an index,
// over the rate at which documents are crawled, with observers and with a batch job over the whole repository.
//
//	crawler ──▶ repository ──▶ members, clusters   documents with the same content, and each cluster's representative
//	                      ├──▶ inverted            links, from their targets to their sources
//	                      └──▶ shown               the crawl that the index contains of each document
//
// Both ways derive the same tables, which are compared with each other's definition after each measurement. The batch job
// runs without a pause: a document waits for the end of the job that is under way, and then for the next one.
//
// Invariants:
//  1. A latency begins when a document is due to be crawled, also if the crawler is late, and ends when a reader can see the
//     derived rows.
//  2. Both ways are measured with the same documents, at the same rates, in turns.
package crawl
