package mvcc

import "testing"

// The tests below are rows of the table of known failures that docs/transactions-tests.md lists. Goal: each scenario
// ends correctly. Method: a transcript of requests and answers, whose comments describe the scenario.

func TestProto_T_PES_2(t *testing.T)  { runTranscript(t, "testdata/proto/T_PES_2") }
func TestProto_T_PES_3(t *testing.T)  { runTranscript(t, "testdata/proto/T_PES_3") }
func TestProto_T_PES_5(t *testing.T)  { runTranscript(t, "testdata/proto/T_PES_5_remote") }
func TestProto_T_PES_8(t *testing.T)  { runTranscript(t, "testdata/proto/T_PES_8_remote") }
func TestProto_T_PES_9(t *testing.T)  { runTranscript(t, "testdata/proto/T_PES_9") }
func TestProto_T_PES_10(t *testing.T) { runTranscript(t, "testdata/proto/T_PES_10") }
