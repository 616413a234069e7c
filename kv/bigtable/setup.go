package bigtable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/kv/bigtable/widerow"
)

// Setup is what CreateTable has found and made.
type Setup struct {
	Created  bool     // the table did not exist
	Families []string // that were created, or added to a table that lacked them
	// Profile says how the application profile routes, "" if that cannot be known: on an emulator, or without the right to read profiles.
	Profile string
}

// setupTimeout bounds the preparation. Google's library repeats requests until then.
const setupTimeout = 30 * time.Second

var errSetupTimeout = errors.New("no answer within 30 seconds")

// SetupError is an error of preparing an instance, with what to do about it.
type SetupError struct {
	What, Hint string
	Err        error
}

func (e *SetupError) Error() string {
	text := e.What
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "\n" + e.Hint
}
func (e *SetupError) Unwrap() error { return e.Err }

// CreateTable creates the table and its families unless they exist, and checks the application profile. No family has a policy for garbage
// collection: those of Bigtable take timestamps for times, and would remove what percodb still needs.
//
// A process that may not administer tables starts if the table is there. While Bigtable is unavailable it is asked again, for a few seconds.
func CreateTable(ctx context.Context, opts Options) (*Setup, error) {
	opts = opts.withDefaults()
	if err := awaitEmulator(ctx, opts.Emulator, emulatorTimeout); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, setupTimeout, errSetupTimeout)
	defer cancel()
	for pause := 100 * time.Millisecond; ; pause *= 2 {
		setup, err := createTable(ctx, opts)
		if status.Code(err) != codes.Unavailable || pause > 2*time.Second {
			return setup, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// createTable is CreateTable without repetitions.
func createTable(ctx context.Context, opts Options) (*Setup, error) {
	admin, err := bigtable.NewAdminClient(ctx, opts.Project, opts.Instance, opts.clientOptions(newRequestMetrics())...)
	if err != nil {
		return nil, credentialsError(err)
	}
	defer admin.Close()
	setup := &Setup{}
	if setup.Profile, err = checkProfile(ctx, opts); err != nil {
		return nil, err
	}
	conf := &bigtable.TableConf{TableID: opts.Table, ColumnFamilies: map[string]bigtable.Family{}}
	for _, family := range families {
		conf.ColumnFamilies[family] = bigtable.Family{GCPolicy: bigtable.NoGcPolicy()}
	}
	err = admin.CreateTableFromConf(ctx, conf)
	switch status.Code(err) {
	case codes.OK:
		setup.Created, setup.Families = true, slices.Clone(families)
		sort.Strings(setup.Families)
	case codes.AlreadyExists:
		if err := completeTable(ctx, admin, opts, setup); err != nil {
			return nil, err
		}
	case codes.PermissionDenied: // probe finds out whether it exists.
	default:
		return nil, setupError(ctx, opts, err)
	}
	return setup, probe(ctx, opts, err)
}

// completeTable adds the families that a table lacks, and refuses one with a policy that would remove cells.
func completeTable(ctx context.Context, admin *bigtable.AdminClient, opts Options, setup *Setup) error {
	info, err := admin.TableInfo(ctx, opts.Table)
	if status.Code(err) == codes.PermissionDenied {
		return nil
	}
	if err != nil {
		return setupError(ctx, opts, err)
	}
	missing := slices.Clone(families)
	for _, family := range info.FamilyInfos {
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == family.Name })
		if slices.Contains(families, family.Name) && family.FullGCPolicy != nil && family.FullGCPolicy.String() != bigtable.NoGcPolicy().String() {
			return &SetupError{What: fmt.Sprintf("the family %s of the table %s has the garbage collection policy %s, which would remove rows of percodb", family.Name, opts.Table, family.FullGCPolicy),
				Hint: fmt.Sprintf("Remove it: cbt -project %s -instance %s setgcpolicy %s %s never", opts.Project, opts.Instance, opts.Table, family.Name)}
		}
	}
	for _, name := range missing {
		if err := admin.CreateColumnFamilyWithConfig(ctx, opts.Table, name, bigtable.Family{GCPolicy: bigtable.NoGcPolicy()}); err != nil && status.Code(err) != codes.AlreadyExists {
			return setupError(ctx, opts, err)
		}
		setup.Families = append(setup.Families, name)
	}
	return nil
}

// probe sends what percodb needs, a read and a conditional request, both about a row that never exists. created is the answer to the
// table's creation.
func probe(ctx context.Context, opts Options, created error) error {
	opts.Registerer = nil // The process registers its own.
	c, err := connect(ctx, opts)
	if err != nil {
		return credentialsError(err)
	}
	defer c.client.Close()
	row := metaRow("probe")
	err = c.table.ReadRows(ctx, widerow.RowList{row}, wholeFamily(familyMeta), widerow.ReadOptions{Limit: 1}, func(widerow.Row) bool { return true })
	if status.Code(err) == codes.NotFound {
		return &SetupError{What: "the table " + opts.Table + " does not exist, and may not be created", Err: created,
			Hint: "Run percodb init --engine bigtable once as a user with the role roles/bigtable.admin; percodb start then needs roles/bigtable.user."}
	}
	if err != nil {
		return setupError(ctx, opts, err)
	}
	change := widerow.NewMutation()
	change.DeleteCellsInColumn(familyMeta, columnValue)
	_, err = c.table.CheckAndMutate(ctx, row, wholeFamily(familyMeta), change, nil)
	switch status.Code(err) {
	case codes.OK:
		return c.identify(ctx)
	case codes.FailedPrecondition, codes.InvalidArgument:
		return &SetupError{What: "Bigtable refuses conditional requests, by which percodb commits", Err: err,
			Hint: "The application profile must route to a single cluster and allow single-row transactions; give such a one as --app-profile: gcloud bigtable app-profiles create percodb --project " +
				opts.Project + " --instance " + opts.Instance + " --route-to=CLUSTER --transactional-writes"}
	}
	return setupError(ctx, opts, err)
}

// checkProfile returns how the application profile routes, and an error for one whose conditional requests Bigtable refuses.
func checkProfile(ctx context.Context, opts Options) (string, error) {
	admin, err := bigtable.NewInstanceAdminClient(ctx, opts.Project, opts.clientOptions(newRequestMetrics())...)
	if err != nil {
		return "", credentialsError(err)
	}
	defer admin.Close()
	name := opts.AppProfile
	if name == "" {
		name = "default"
	}
	profile, err := admin.GetAppProfile(ctx, opts.Instance, name)
	switch status.Code(err) {
	case codes.OK:
	case codes.PermissionDenied, codes.Unimplemented:
		return "", nil // The first conditional request tells.
	case codes.NotFound:
		return "", &SetupError{What: fmt.Sprintf("the instance %s of the project %s, or its application profile %s, does not exist", opts.Instance, opts.Project, name), Err: err,
			Hint: "Check --project, --instance and --app-profile: gcloud bigtable instances list --project " + opts.Project}
	default:
		return "", setupError(ctx, opts, err)
	}
	single := profile.GetSingleClusterRouting()
	switch {
	case single == nil:
		return "", &SetupError{What: "the application profile " + name + " routes to several clusters; conditional requests, by which percodb commits, need a profile that routes to one",
			Hint: fmt.Sprintf("Create one, and give it as --app-profile: gcloud bigtable app-profiles create percodb --project %s --instance %s --route-to=CLUSTER --transactional-writes", opts.Project, opts.Instance)}
	case !single.GetAllowTransactionalWrites():
		return "", &SetupError{What: "the application profile " + name + " does not allow single-row transactions, by which percodb commits",
			Hint: fmt.Sprintf("Allow them: gcloud bigtable app-profiles update %s --project %s --instance %s --route-to=%s --transactional-writes", name, opts.Project, opts.Instance, single.GetClusterId())}
	}
	return "the application profile " + name + " routes to the cluster " + single.GetClusterId(), nil
}

// credentialsError is the error of a client that cannot be made, which happens before a request is sent.
func credentialsError(err error) error {
	return &SetupError{What: "connect to Bigtable", Err: err,
		Hint: "percodb takes the credentials that Google's libraries find: GOOGLE_APPLICATION_CREDENTIALS, or gcloud auth application-default login. With --emulator none are needed."}
}

// setupError adds what to do to an error of Bigtable.
func setupError(ctx context.Context, opts Options, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if !errors.Is(cause, errSetupTimeout) {
			return cause
		}
		err = status.Error(codes.DeadlineExceeded, errSetupTimeout.Error())
	}
	hint := "Try again; if it stays so: https://status.cloud.google.com"
	switch status.Code(err) {
	case codes.NotFound:
		hint = "Check --project and --instance: gcloud bigtable instances list --project " + opts.Project
	case codes.PermissionDenied:
		hint = "The credentials need the role roles/bigtable.user in the project " + opts.Project + ", and for percodb init and the first start roles/bigtable.admin."
	case codes.Unauthenticated:
		hint = "The credentials are not valid: GOOGLE_APPLICATION_CREDENTIALS, or gcloud auth application-default login."
	case codes.ResourceExhausted:
		hint = "A quota of the project is used up: https://console.cloud.google.com/iam-admin/quotas?project=" + opts.Project
	case codes.Unavailable, codes.DeadlineExceeded:
		hint = "Bigtable does not answer: check the network, and with --emulator whether it runs."
	}
	return &SetupError{What: fmt.Sprintf("prepare the table %s of the instance %s", opts.Table, opts.Instance), Err: err, Hint: hint}
}
