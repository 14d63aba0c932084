#!/usr/bin/env -S python3 -B
# timeout: 300
# parallel: yes
"""perl, a hash of many keys, sorted, and half of it deleted again."""
import libreal

SCRIPT = r"""
my ($count) = @ARGV;
my (%hash, $sum);
$hash{"key $_"} = [$_, "value $_"] for 1 .. $count;
for my $key (sort keys %hash) {
	$sum += $hash{$key}[0];
	delete $hash{$key} if $sum % 2;
}
printf "%d keys, sum %d, %s\n", scalar(keys %hash), $sum, (sort keys %hash)[7];
"""

perl = libreal.find_program("perl")
env = libreal.environment(PERL_HASH_SEED="0")
with open("hash.pl", "w", encoding="ascii") as file:
    file.write(SCRIPT)
proof = libreal.Proof()

big = [perl, "hash.pl", "200000"]
untraced = libreal.must_run("big.untraced", big, env)
recording = libreal.record("big", big, env)
libreal.check_same_run(proof, "big", untraced, recording)
libreal.check_sane(proof, "big", recording)
proof.check(recording.heap["allocations"] > 800_000, "big: more than 800,000 allocations",
            recording.heap)

short = libreal.Witnesses(proof, "short", [perl, "hash.pl", "10000"], env)
short.run()
short.check()
proof.finish()
