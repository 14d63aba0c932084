// adversary_library: the library that adversary opens; built twice, as adversary_a and adversary_b,
// with code of the same length at the same places, whose frames differ in size.
void adversary_call(void (*call)(void));

__attribute__((noinline)) void adversary_call(void (*call)(void))
{
	volatile char frame[ADVERSARY_FRAME_BYTES];

	frame[0] = 1;
	call();
	frame[1] = frame[0];
}
