package catalog

// IsSystemColumn reports whether PostgreSQL's tables have a column of the name beside their own, so that none of them can be named so.
func IsSystemColumn(name string) bool {
	switch name {
	case "tableoid", "ctid", "xmin", "xmax", "cmin", "cmax":
		return true
	}
	return false
}
