#!/bin/sh
# timeout: 120
# parallel: yes
# The demo shows a recording, its report and its info, and leaves nothing behind.
set -eu
"$TIDEMARK_SOURCE/tools/demo" >out 2>err </dev/null
cat out
for line in '^\$ tidemark record ' '0 events lost$' '^\$ tidemark report ' '^  peak ' \
	'^LIVE AT EXIT ' ' Perl_[a-z_]* ' '^\$ tidemark info ' '^lost  *nothing$'; do
	grep -q -- "$line" out || {
		echo "demo: no line like: $line"
		exit 1
	}
done
[ ! -s err ] || {
	cat err
	echo "demo: something on standard error"
	exit 1
}
left=$(find "$TMPDIR" -mindepth 1 -maxdepth 1 ! -name out ! -name err)
[ -z "$left" ] || {
	echo "demo: left behind: $left"
	exit 1
}
