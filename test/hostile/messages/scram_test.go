package messages

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
)

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func randomText(rng *rand.Rand, n int) string { return b64(noise(rng, n)) }

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

const binding = "p=tls-server-end-point,,"

// compose makes a right first message, for one of the mechanisms that the server offers.
func (x *exchange) compose() {
	x.mechanism = "SCRAM-SHA-256"
	header := pick(x.rng, "n,,", "y,,")
	if x.channel != nil {
		header = "n,,"
		if x.rng.IntN(3) > 0 {
			x.mechanism, header = "SCRAM-SHA-256-PLUS", binding
		}
	}
	x.first = header + "n=,r=" + randomText(x.rng, 18)
}

// header is the part of the first message that is repeated in the last one.
func (x *exchange) header() string {
	parts := strings.SplitAfterN(x.first, ",", 3)
	return strings.Join(parts[:min(2, len(parts))], "")
}

// damageFirst changes the first message, or the mechanism.
func (x *exchange) damageFirst() {
	rng := x.rng
	rest := strings.TrimPrefix(x.first, x.header())
	switch rng.IntN(8) {
	case 0:
		x.mechanism = pick(rng, "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS", "SCRAM-SHA-1", "SCRAM-SHA-512", "", "scram-sha-256", "EXTERNAL", "PLAIN",
			"SCRAM-SHA-256-PLUS ", strings.Repeat("SCRAM-", rng.IntN(200)))
	case 1:
		x.first = pick(rng, "n,,", "y,,", binding, "p=tls-unique,,", "p=tls-exporter,,", "p=,,", "p,,", "n,a=postgres,", "n,a=,", "n,a==2C,", "", ",,", "N,,",
			"n,", "n,,,", "z,,", "p=tls-server-end-point\x00,,", "p=TLS-SERVER-END-POINT,,") + rest
	case 2:
		x.first = x.header() + pick(rng, "", "n=", "r=x", "n=,r=", "n=,r", "n=,x=r", "n=,n=,r=x", "m=x,n=,r=x", "n=postgres,r=x", "n=a=2Cb=3D,r=x", "n==,r=x", "n=\xff,r=x",
			"n=,r=x,y=z", "n=,r=x,r=y", "n=,r=\x00", "n=,r=a b", "n=,r=\x7fÿ", "r=x,n=", "n=,r=x,i=1", "n=,r=x,s=AAAA,i=1", "n=postgres\x00,r=x")
	case 3:
		x.first += pick(rng, ",", ",m=x", ",x=y", ",i=1", "\x00", " ", "\n", ",p=AAAA", strings.Repeat("n", rng.IntN(2000)))
	case 4:
		x.first = x.first[:rng.IntN(len(x.first))]
	case 5:
		x.first = strings.Repeat(x.first, 1+rng.IntN(40))
	case 6: // a downgrade: as if whoever is between the two had taken SCRAM-SHA-256-PLUS from the server's offer, or the client's choice
		x.mechanism, x.first = "SCRAM-SHA-256", pick(rng, "y,,", "y,,", binding)+rest
	default:
		x.first = string(mutate(rng, message(x.first), []message{message(x.first)}))
	}
}

// fields are those of the client's last message.
type fields struct{ c, r, more string }

// finish makes the last message, damaged or not. The client knows the password, if there is one: fields are damaged before the
// proof is computed, and the proof and the message afterwards.
func (x *exchange) finish(damaged bool) string {
	nonce, _, _ := strings.Cut(strings.TrimPrefix(x.challenge, "r="), ",")
	bound := x.header()
	if strings.HasPrefix(bound, "p=") {
		bound += string(x.channel)
	}
	f := fields{c: b64([]byte(bound)), r: nonce}
	kind := 0
	if damaged {
		kind = 1 + x.rng.IntN(4)
	}
	if kind == 1 {
		x.damageFields(&f)
	}
	unproven := "c=" + f.c + ",r=" + f.r + f.more
	proof := x.prove(unproven)
	switch kind {
	case 2:
		return unproven + ",p=" + x.damageProof(unproven, proof)
	case 3:
		return x.damageLast(unproven, b64(proof))
	case 4:
		last := message(unproven + ",p=" + b64(proof))
		return string(mutate(x.rng, last, []message{last, message(x.challenge), message(x.first)}))
	}
	return unproven + ",p=" + b64(proof)
}

// prove is the client's proof for a last message; noise if there is no password.
func (x *exchange) prove(unproven string) []byte {
	if x.keys == nil {
		return noise(x.rng, 32)
	}
	return x.keys.proof(strings.TrimPrefix(x.first, x.header()) + "," + x.challenge + "," + unproven)
}

func (x *exchange) damageFields(f *fields) {
	rng := x.rng
	switch rng.IntN(3) {
	case 0:
		f.c = pick(rng, "biws", "eSws", "", "!!!!", "biw", "bi\nws", "biws=", " biws", b64([]byte(binding)), b64([]byte(binding+"\x00")), b64(append([]byte(binding), noise(rng, 32)...)),
			b64(append([]byte(binding), x.channel[:len(x.channel)/2]...)), b64(append([]byte(binding), x.channel...)), b64(append([]byte("p=tls-unique,,"), x.channel...)),
			b64(append([]byte("n,,"), x.channel...)), b64(x.channel), f.c+f.c, strings.TrimRight(f.c, "="), b64([]byte("n,a=postgres,")), b64(noise(rng, rng.IntN(700))))
	case 1:
		f.r = pick(rng, "", f.r[:len(f.r)/2], f.r[:len(f.r)-1], f.r+"x", f.r+f.r, strings.ToUpper(f.r), randomText(rng, 40), "r="+f.r, f.r[1:], f.r+"\x00")
	default:
		f.more = pick(rng, ",x=y", ",", ",m=x", ",i=1", ",i=2147483647", ",p=AAAA", ",c=biws", ",r="+f.r, ",x="+strings.Repeat("y", rng.IntN(1000)), ",\x00", ",n=postgres", ",a=postgres")
	}
}

func (x *exchange) damageProof(unproven string, proof []byte) string {
	rng := x.rng
	flipped := append([]byte(nil), proof...)
	flipped[rng.IntN(len(flipped))] ^= 1 << rng.IntN(8)
	text := b64(proof)
	var others []string
	if x.keys != nil { // The keys themselves, which whoever has read the verifier knows in part, and proofs of other texts.
		others = []string{b64(x.keys.stored), b64(x.keys.sign), b64(x.keys.client), b64(mac(x.keys.stored, unproven)), b64(x.keys.proof(unproven)), b64(x.keys.proof("")), b64(mac(x.keys.sign, unproven))}
	}
	return pick(rng, append(others, "", "=", "A", "AAAA", b64(make([]byte, 32)), b64(flipped), b64(proof[:31]), b64(append(proof, 0)), b64(append(proof, proof...)), text[1:], text[:len(text)-1],
		text+"=", text+"\n", text+",x=y", text+",", " "+text, strings.NewReplacer("+", "-", "/", "_").Replace(text), strings.ToLower(text), text+text, strings.Repeat("A", rng.IntN(2000)))...)
}

// damageLast changes the order of what belongs to the last message, or replaces it.
func (x *exchange) damageLast(unproven, proof string) string {
	c, r, _ := strings.Cut(unproven, ",")
	return pick(x.rng, "", ",", ",,", ",,,", "p="+proof, unproven, c+",p="+proof, r+",p="+proof, r+","+c+",p="+proof, "p="+proof+","+unproven, unproven+",p="+proof+",p="+proof, unproven+",p=AAAA,p="+proof,
		unproven+",v="+proof, x.challenge, x.first, "v="+proof, "e=other-error", unproven+","+unproven+",p="+proof, strings.ToUpper(c)+","+r+",p="+proof, "\x00"+unproven+",p="+proof, unproven+",p="+proof+"\x00")
}
