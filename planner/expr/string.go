package expr

// String prints the expression for EXPLAIN.
func (x *Column) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Outer) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Const) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Input) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *CaseValue) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *And) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Or) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Not) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *IsNull) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *IsBool) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Compare) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *IsDistinct) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *RowCompare) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Between) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *IntArith) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *FloatArith) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Case) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Coalesce) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *NullIf) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *MinMax) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Array) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Record) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Field) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Subscript) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Slice) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *InList) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *TupleList) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Like) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *ScalarSubquery) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Exists) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *ArraySubquery) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *InSubquery) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *QuantifiedSubquery) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Call) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Cast) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Parse) String() string { return text(x) }

// String prints the expression for EXPLAIN.
func (x *Quantified) String() string { return text(x) }
