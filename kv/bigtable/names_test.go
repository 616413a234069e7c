package bigtable

import (
	"errors"
	"strings"
	"testing"
)

// Goal: names are permitted as Bigtable permits them. Method: a table of names.
func TestNames(t *testing.T) {
	long := strings.Repeat("a", 51)
	permitted := Options{Project: "my-project", Instance: "my-instance", Table: "percodb"}
	for _, c := range []struct {
		what string
		set  func(o *Options, name string)
		good []string
		bad  []string
	}{
		{"project", func(o *Options, name string) { o.Project = name }, []string{"my-project-1", "example.com:my-project", "123456789012"},
			[]string{"", "p", "my/project", "my project", "My-Project", "1project", "project-", "projekt-ä", "a\nprojec", "project:", ":project", long}},
		{"instance", func(o *Options, name string) { o.Instance = name }, []string{"my-instance", "i12345"},
			[]string{"", "i", "my/instance", "my instance", "My-Instance", "1instance", "instance-", "instanz-ä", "a:my-instance", long}},
		{"table", func(o *Options, name string) { o.Table = name }, []string{"t", "_t", "T.1-x", long[:50]},
			[]string{"", "a/b", "a b", ".t", "-t", "tä", "a:b", "t\x00", long}},
		{"app-profile", func(o *Options, name string) { o.AppProfile = name }, []string{"", "p", "P_1"},
			[]string{"a/b", "a b", "-p", "ä", long}},
	} {
		for i, name := range append(c.good, c.bad...) {
			o := permitted
			c.set(&o, name)
			err := o.CheckNames()
			var refused *NameError
			switch {
			case i < len(c.good) && err != nil:
				t.Error(err)
			case i >= len(c.good) && (!errors.As(err, &refused) || refused.What != c.what || refused.Name != name):
				t.Errorf("%s %q: %v", c.what, name, err)
			}
		}
	}
	emulated := Options{Project: "p", Instance: "i", Table: "t", Emulator: "127.0.0.1:1"}
	if err := emulated.CheckNames(); err != nil {
		t.Error(err)
	}
}
