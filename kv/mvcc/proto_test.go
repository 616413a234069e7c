package mvcc

import "testing"

// The tests below are rows of the table of known failures that docs/transactions-tests.md lists. Goal: each scenario
// ends correctly. Method: a transcript of requests and answers, whose comments describe the scenario. kv/kvtest has those
// that every engine can run.

func TestProto_T_DUP_1(t *testing.T)  { runTranscript(t, "testdata/proto/T_DUP_1_remote") }
func TestProto_T_DUP_2(t *testing.T)  { runTranscript(t, "testdata/proto/T_DUP_2_remote") }
func TestProto_T_DUP_3(t *testing.T)  { runTranscript(t, "testdata/proto/T_DUP_3") }
func TestProto_T_DUP_4(t *testing.T)  { runTranscript(t, "testdata/proto/T_DUP_4") }
func TestProto_T_DUP_5(t *testing.T)  { runTranscript(t, "testdata/proto/T_DUP_5_remote") }
func TestProto_T_ASY_1(t *testing.T)  { runTranscript(t, "testdata/proto/T_ASY_1_remote") }
func TestProto_T_ASY_2(t *testing.T)  { runTranscript(t, "testdata/proto/T_ASY_2_remote") }
func TestProto_T_ASY_3(t *testing.T)  { runTranscript(t, "testdata/proto/T_ASY_3_remote") }
func TestProto_T_ASY_4(t *testing.T)  { runTranscript(t, "testdata/proto/T_ASY_4_remote") }
func TestProto_T_ASY_5(t *testing.T)  { runTranscript(t, "testdata/proto/T_ASY_5_remote") }
func TestProto_T_ASY_6(t *testing.T)  { runTranscript(t, "testdata/proto/T_ASY_6_remote") }
func TestProto_T_ASY_11(t *testing.T) { runTranscript(t, "testdata/proto/T_ASY_11_remote") }
func TestProto_T_ASY_13(t *testing.T) { runTranscript(t, "testdata/proto/T_ASY_13_remote") }
func TestProto_T_1PC_1(t *testing.T)  { runTranscript(t, "testdata/proto/T_1PC_1") }
func TestProto_T_1PC_2(t *testing.T)  { runTranscript(t, "testdata/proto/T_1PC_2") }
func TestProto_T_DUR_2(t *testing.T)  { runTranscript(t, "testdata/proto/T_DUR_2") }
func TestProto_T_PUSH_2(t *testing.T) { runTranscript(t, "testdata/proto/T_PUSH_2") }
func TestProto_T_PUSH_3(t *testing.T) { runTranscript(t, "testdata/proto/T_PUSH_3") }
func TestProto_T_PUSH_4(t *testing.T) { runTranscript(t, "testdata/proto/T_PUSH_4") }
func TestProto_T_CMP_2(t *testing.T)  { runTranscript(t, "testdata/proto/T_CMP_2") }
func TestProto_T_CMP_3(t *testing.T)  { runTranscript(t, "testdata/proto/T_CMP_3") }
func TestProto_T_ORD_2(t *testing.T)  { runTranscript(t, "testdata/proto/T_ORD_2") }
