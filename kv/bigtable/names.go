package bigtable

import (
	"fmt"
	"regexp"
)

// NameError is a name that Bigtable does not permit.
type NameError struct {
	What      string // project, instance, table or app-profile
	Name      string
	Permitted string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("%s %q: Bigtable permits %s", e.What, e.Name, e.Permitted)
}

// nameRule says which names Bigtable permits, as Google's interfaces state it.
type nameRule struct {
	what        string
	least, most int // characters; an emulator has no least number
	form        *regexp.Regexp
	permitted   string
}

const idForm = "%d to %d letters, digits, _, - and ., not beginning with - or ."

var (
	projectRule = nameRule{"project", 6, 30, regexp.MustCompile(`^(?:[a-z][-a-z0-9]*(?:\.[-a-z0-9]+)+:)?[a-z](?:[-a-z0-9]*[a-z0-9])?$|^[0-9]+$`),
		"%d to %d lowercase letters, digits and hyphens, beginning with a letter and not ending with a hyphen, or the number of a project"}
	instanceRule = nameRule{"instance", 6, 33, regexp.MustCompile(`^[a-z](?:[-a-z0-9]*[a-z0-9])?$`),
		"%d to %d lowercase letters, digits and hyphens, beginning with a letter and not ending with a hyphen"}
	idPattern   = regexp.MustCompile(`^[_a-zA-Z0-9][-_.a-zA-Z0-9]*$`)
	tableRule   = nameRule{"table", 1, 50, idPattern, idForm}
	profileRule = nameRule{"app-profile", 1, 50, idPattern, idForm}
)

// projectDomain is the domain of a project's name, which older projects have: example.com:project.
var projectDomain = regexp.MustCompile(`^[^:]*:`)

func (r *nameRule) check(name string, emulator bool) error {
	least := r.least
	if emulator {
		least = 1
	}
	n := len(projectDomain.ReplaceAllString(name, ""))
	if n < least || n > r.most || !r.form.MatchString(name) {
		return &NameError{What: r.what, Name: name, Permitted: fmt.Sprintf(r.permitted, least, r.most)}
	}
	return nil
}

// CheckNames returns a *NameError unless the names are those that Bigtable permits. An emulator's project and instance may be short. An application
// profile need not be named.
func (o *Options) CheckNames() error {
	emulator := o.Emulator != ""
	for _, name := range []struct {
		rule *nameRule
		name string
	}{{&projectRule, o.Project}, {&instanceRule, o.Instance}, {&tableRule, o.Table}, {&profileRule, o.AppProfile}} {
		if name.rule == &profileRule && name.name == "" {
			continue
		}
		if err := name.rule.check(name.name, emulator); err != nil {
			return err
		}
	}
	return nil
}
