// Package rpc connects the Hubs of SQL processes with the Exchange over gRPC.
//
//	notify.Hub ─▶ notify.Link = Client ═gRPC stream═ Register ─▶ notify.Exchange
//
// Invariants: requests and events of a stream arrive in order, or the stream breaks; when it breaks, the client ends the
// listeners of its process, and the Exchange those of the channels that the process has announced.
package rpc

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/notify"
	"github.com/percodb/percodb/notify/rpc/notifypb"
	"github.com/percodb/percodb/tso"
)

type server struct {
	notifypb.UnimplementedNotificationsServer
	exchange *notify.Exchange
}

// Register has r serve an Exchange, which stays the caller's. A cluster has one.
func Register(r grpc.ServiceRegistrar, exchange *notify.Exchange) {
	notifypb.RegisterNotificationsServer(r, &server{exchange: exchange})
}

// Connect implements the service.
func (s *server) Connect(stream grpc.BidiStreamingServer[notifypb.Request, notifypb.Events]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if hello == nil {
		return status.Error(codes.InvalidArgument, "the first request is not Hello")
	}
	h := notify.Hello{Process: hello.Process, Channels: hello.Channels, Lost: hello.Lost, LostAll: hello.LostAll, Announced: map[uint64][]string{}}
	for _, a := range hello.Announced {
		h.Announced[a.Id] = a.Channels
	}
	member, err := s.exchange.Join(h)
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	defer member.Leave()
	if err := stream.Send(&notifypb.Events{}); err != nil {
		return err
	}
	received := make(chan error, 1)
	go func() { received <- receive(stream, member) }() // It ends with the stream.
	sent := make(chan error, 1)
	go func() { sent <- send(stream, member) }()
	select {
	case err = <-received:
		member.Leave()
		<-sent
		return err
	case err = <-sent:
		if err == nil {
			err = status.Error(codes.ResourceExhausted, "the process does not receive its notifications")
		}
		return err
	}
}

// receive carries out requests until the stream ends.
func receive(stream grpc.BidiStreamingServer[notifypb.Request, notifypb.Events], m *notify.Member) error {
	for {
		req, err := stream.Recv()
		if err != nil {
			return err
		}
		switch kind := req.Kind.(type) {
		case *notifypb.Request_Subscribe:
			m.Subscribe(kind.Subscribe.GetId(), kind.Subscribe.GetChannels())
		case *notifypb.Request_Unsubscribe:
			m.Unsubscribe(kind.Unsubscribe.GetChannels())
		case *notifypb.Request_Announce:
			m.Announce(kind.Announce.GetId(), kind.Announce.GetChannels())
		case *notifypb.Request_Publish:
			m.Publish(kind.Publish.GetId(), decodeMessages(kind.Publish.GetMessages()))
		case *notifypb.Request_Cancel:
			m.Cancel(kind.Cancel)
		case *notifypb.Request_Lose:
			m.Lose(kind.Lose)
		case *notifypb.Request_Leave:
			m.Goodbye(kind.Leave)
		case *notifypb.Request_LockHint:
			m.SendLockHint(decodeHint(kind.LockHint))
		}
	}
}

// batchBytes is about how much one message to a process carries.
const batchBytes = 1 << 20

// send sends events until the member is to end.
func send(stream grpc.BidiStreamingServer[notifypb.Request, notifypb.Events], m *notify.Member) error {
	for {
		events := m.Next()
		if events == nil {
			return nil
		}
		for len(events) > 0 {
			batch := &notifypb.Events{}
			size := 0
			for len(events) > 0 && size < batchBytes {
				size += appendEvent(batch, &events[0])
				events = events[1:]
			}
			if err := stream.Send(batch); err != nil {
				return err
			}
		}
	}
}

func appendEvent(batch *notifypb.Events, e *notify.Event) (size int) {
	switch {
	case e.Ack != 0:
		batch.Acks = append(batch.Acks, e.Ack)
	case e.Lost != "":
		batch.Lost = append(batch.Lost, e.Lost)
	case e.LostAll:
		batch.LostAll = true
	case e.Ended:
		batch.Ended = true
	case e.LockHint != nil:
		batch.LockHints = append(batch.LockHints, encodeHint(e.LockHint))
		size = len(e.LockHint.Key)
	default:
		batch.Messages = append(batch.Messages, encodeMessage(&e.Message))
	}
	return size + int(e.Message.Size()) + len(e.Lost)
}

func encodeHint(h *notify.LockHint) *notifypb.LockHint {
	return &notifypb.LockHint{Process: h.Process, Holder: uint64(h.Holder), Key: h.Key, Released: h.Released}
}

func decodeHint(h *notifypb.LockHint) notify.LockHint {
	return notify.LockHint{Process: h.GetProcess(), Holder: tso.Timestamp(h.GetHolder()), Key: h.GetKey(), Released: h.GetReleased()}
}

func encodeMessage(m *notify.Message) *notifypb.Message {
	return &notifypb.Message{Pid: m.PID, Channel: m.Channel, Payload: m.Payload}
}

func encodeMessages(messages []notify.Message) []*notifypb.Message {
	list := make([]*notifypb.Message, len(messages))
	for i := range messages {
		list[i] = encodeMessage(&messages[i])
	}
	return list
}

func decodeMessages(list []*notifypb.Message) []notify.Message {
	messages := make([]notify.Message, len(list))
	for i, m := range list {
		messages[i] = notify.Message{PID: m.GetPid(), Channel: m.GetChannel(), Payload: m.GetPayload()}
	}
	return messages
}
