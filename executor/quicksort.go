package executor

// quickSort brings items into order. Which of equal items comes first is decided as by PostgreSQL: this is the quicksort of the article
// "Engineering a sort function" (Software: Practice and Experience, 1993) with the choices of PostgreSQL's src/include/lib/sort_template.h: input that
// is in order is left alone, seven items and more are partitioned, and the pivot is the median of three, or of three medians above forty.
// Its worst case is quadratic, and its caller bounds the number of items.
func quickSort[E any](items []E, compare func(a, b *E) int) {
	for len(items) > 1 && !inOrder(items, compare) {
		if len(items) < 7 {
			insertionSort(items, compare)
			return
		}
		left, right := partition(items, compare)
		if len(left) > len(right) {
			left, right = right, left
		}
		quickSort(left, compare)
		items = right
	}
}

func inOrder[E any](items []E, compare func(a, b *E) int) bool {
	for i := 1; i < len(items); i++ {
		if compare(&items[i-1], &items[i]) > 0 {
			return false
		}
	}
	return true
}

func insertionSort[E any](items []E, compare func(a, b *E) int) {
	for i := 1; i < len(items); i++ {
		item := items[i]
		j := i
		for ; j > 0 && compare(&items[j-1], &item) > 0; j-- {
			items[j] = items[j-1]
		}
		items[j] = item
	}
}

// partition moves the items equal to a pivot to the middle, and returns those before and those behind them.
func partition[E any](items []E, compare func(a, b *E) int) (left, right []E) {
	swap := func(a, b, n int) {
		for i := range n {
			items[a+i], items[b+i] = items[b+i], items[a+i]
		}
	}
	swap(0, pivot(items, compare), 1)
	// Equal items gather at both ends: those before a and those behind d. Between a and b are lesser ones, between c and d greater ones.
	a, b := 1, 1
	c, d := len(items)-1, len(items)-1
	for {
		for ; b <= c; b++ {
			r := compare(&items[b], &items[0])
			if r > 0 {
				break
			}
			if r == 0 {
				swap(a, b, 1)
				a++
			}
		}
		for ; b <= c; c-- {
			r := compare(&items[c], &items[0])
			if r < 0 {
				break
			}
			if r == 0 {
				swap(c, d, 1)
				d--
			}
		}
		if b > c {
			break
		}
		swap(b, c, 1)
		b, c = b+1, c-1
	}
	lesser, greater, n := b-a, d-c, len(items)
	equal := min(a, lesser)
	swap(0, b-equal, equal)
	equal = min(greater, n-d-1)
	swap(b, n-equal, equal)
	return items[:lesser], items[n-greater:]
}

// pivot returns the place of the item that divides seven or more.
func pivot[E any](items []E, compare func(a, b *E) int) int {
	n := len(items)
	first, middle, last := 0, n/2, n-1
	if n == 7 {
		return middle
	}
	if n > 40 {
		d := n / 8
		first = median(items, compare, first, first+d, first+2*d)
		middle = median(items, compare, middle-d, middle, middle+d)
		last = median(items, compare, last-2*d, last-d, last)
	}
	return median(items, compare, first, middle, last)
}

// median returns the place of the median of three items.
func median[E any](items []E, compare func(a, b *E) int, a, b, c int) int {
	less := func(x, y int) bool { return compare(&items[x], &items[y]) < 0 }
	if less(a, b) {
		switch {
		case less(b, c):
			return b
		case less(a, c):
			return c
		}
		return a
	}
	switch {
	case less(c, b):
		return b
	case less(a, c):
		return a
	}
	return c
}
