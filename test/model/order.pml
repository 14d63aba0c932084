/*
 * The order protocol of wire/lane_event.h, under x86 memory order, checked in every state.
 *
 * Threads take lanes, allocate, free, reallocate and hand over blocks. What they publish goes
 * through a store buffer, first in, first out; an exchange on the ownership table empties it
 * first. Any state may be the last one (a kill): then what was published must be a prefix of each
 * address's history. The reader is fed in the true order and must find that each address is begun
 * and ended in turn, and that (owner sequence, position in the lane) never falls.
 *
 *     THREADS   2 or 3        OPERATIONS  of each thread
 *     BLOCKS    1 or 2        SLOTS       that they lie in (1: both in one)
 *     LANES     THREADS or 1 more
 *     DIRECT    blocks are handed by a release store and an acquire load, without any exchange
 *
 * Each mutation leaves one rule out, and must be caught:
 *     FREE_AFTERWARDS   a free is recorded after it happened
 *     CHECK_EARLY       the owner is read before malloc has returned
 *     PUBLISH_LATE      a free is published after it happened
 *     NO_UNDO           a realloc that failed is not undone
 *     LANE_RESET        a lane forgets its intervals when it changes hands
 *     STORE             the owner is stored, not exchanged
 */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef LANES
#define LANES THREADS
#endif
#ifndef OPERATIONS
#define OPERATIONS 2
#endif

#define SLOT(block) ((block) % SLOTS)
#define FREE_FOR_ALL 255

mtype = { PUBLISH, AVAILABLE, HOLDER, LANE_FREE };

byte own_sequence[SLOTS], own_lane[SLOTS];   /* the table, shared by the threads */
byte interval[(LANES + 1) * SLOTS];          /* the reader's: the last marker of lane and slot */

byte last_sequence[BLOCKS], last_lane[BLOCKS]; /* what the reader knows of an address */
bit live[BLOCKS];
byte recorded[BLOCKS], published[BLOCKS];    /* events of an address: made, and visible */

byte available[BLOCKS];                      /* the allocator: who may take it, 0: nobody */
byte handed[BLOCKS];                         /* a pointer on its way: to thread - 1, 0: none */
bit lane_free[LANES + 1];
chan buffer[THREADS] = [4] of { mtype, byte, byte };

/* The event itself; its marker, if any, went into the lane before it. */
inline judge(block, begins)
{
	sequence = interval[lane * SLOTS + SLOT(block)];
	assert(live[block] != begins);
	assert(sequence > last_sequence[block] ||
	       (sequence == last_sequence[block] && lane == last_lane[block]));
	live[block] = begins;
	last_sequence[block] = sequence;
	last_lane[block] = lane;
	number = recorded[block];
	recorded[block]++
}

inline check(block)
{
	d_step {
		seen_sequence = own_sequence[SLOT(block)];
		seen_lane = own_lane[SLOT(block)]
	}
}

inline take(block)
{
	if
	:: seen_lane == lane -> skip
	:: else ->
		do
#ifdef STORE
		:: atomic {
			true -> own_sequence[SLOT(block)] = seen_sequence + 1;
			own_lane[SLOT(block)] = lane;
			seen_sequence++;
			break
		}
#else
		:: atomic {
			len(buffer[me]) == 0 && own_sequence[SLOT(block)] == seen_sequence &&
			own_lane[SLOT(block)] == seen_lane ->
			own_sequence[SLOT(block)] = seen_sequence + 1;
			own_lane[SLOT(block)] = lane;
			seen_sequence++;
			break
		}
		:: atomic {
			len(buffer[me]) == 0 && !(own_sequence[SLOT(block)] == seen_sequence &&
						  own_lane[SLOT(block)] == seen_lane) ->
			seen_sequence = own_sequence[SLOT(block)];
			seen_lane = own_lane[SLOT(block)]
		}
#endif
		od;
		interval[lane * SLOTS + SLOT(block)] = seen_sequence
	fi
}

inline emit(block, begins)
{
	atomic { judge(block, begins) };
	buffer[me] ! PUBLISH, block, number
}

inline record(block, begins)
{
	check(block);
	take(block);
	emit(block, begins)
}

/* Each thread keeps blocks that it freed and may get them back without asking anybody. */
#ifdef DIRECT
#define MAY_TAKE(block) ((cached & (1 << (block))) || available[block] == me + 1)
#else
#define MAY_TAKE(block) ((cached & (1 << (block))) || available[block] == FREE_FOR_ALL)
#endif

inline real_malloc(block)
{
	if
	:: (cached & (1 << block)) -> cached = cached - (1 << block)
#ifdef DIRECT
	:: atomic { available[block] == me + 1 -> available[block] = 0 }
#else
	:: atomic { available[block] == FREE_FOR_ALL && len(buffer[me]) == 0 -> available[block] = 0 }
#endif
	fi
}

inline pick_other()
{
#if THREADS == 2
	other = 1 - me
#else
	atomic { if :: other = (me + 1) % THREADS :: other = (me + 2) % THREADS fi }
#endif
}

inline real_free(block)
{
	if
	:: cached = cached | (1 << block)
#ifdef DIRECT
	:: pick_other(); buffer[me] ! AVAILABLE, block, other + 1
#else
	:: buffer[me] ! AVAILABLE, block, FREE_FOR_ALL
#endif
	fi
}

inline do_malloc(block)
{
#ifdef CHECK_EARLY
	check(block); real_malloc(block); take(block); emit(block, 1);
#else
	real_malloc(block); record(block, 1);
#endif
	held = held | (1 << block)
}

inline do_free(block)
{
	held = held - (1 << block);
#if defined(FREE_AFTERWARDS)
	real_free(block); record(block, 0)
#elif defined(PUBLISH_LATE)
	check(block); take(block);
	atomic { judge(block, 0) };
	real_free(block);
	buffer[me] ! PUBLISH, block, number
#else
	record(block, 0); real_free(block)
#endif
}

inline do_realloc(block)
{
	record(block, 0);
	if
	:: record(block, 1) /* in place; or it failed and is undone: the same records */
#ifdef NO_UNDO
	:: skip
#endif
#if BLOCKS == 2
	:: moved = 1 - block; MAY_TAKE(moved) && !(held & (1 << moved)) ->
		real_malloc(moved);
		held = held - (1 << block);
		real_free(block);
		record(moved, 1);
		held = held | (1 << moved)
#endif
	fi
}

proctype Thread(byte me)
{
	byte lane = me + 1;
	byte seen_sequence, seen_lane, sequence, number, block, moved, other;
	byte done = 0, cached = 0, held = 0;

	do
	:: done < OPERATIONS ->
		done++;
		atomic {
			moved = 0; other = 0; number = 0; sequence = 0;
			seen_sequence = 0; seen_lane = 0;
#if BLOCKS == 2
			if :: block = 0 :: block = 1 fi
#else
			block = 0
#endif
		}
		if
		:: MAY_TAKE(block) && !(held & (1 << block)) -> do_malloc(block)
		:: (held & (1 << block)) -> do_free(block)
		:: (held & (1 << block)) -> do_realloc(block)
		:: (held & (1 << block)) -> /* give the pointer away, by a plain store */
			atomic { done--; held = held - (1 << block) };
			pick_other();
			buffer[me] ! HOLDER, block, other + 1
		:: atomic { handed[block] == me + 1 ->
			handed[block] = 0;
			held = held | (1 << block)
		   }
		:: buffer[me] ! LANE_FREE, lane, 0; /* the thread ends, another begins */
			lane = 0;
			atomic {
				if
				:: other = 1
				:: other = 2
				:: LANES > 2 -> other = 3
				:: LANES > 3 -> other = 4
				fi
			};
			atomic { lane_free[other] -> lane_free[other] = 0; lane = other };
#ifdef LANE_RESET
			d_step {
				interval[lane * SLOTS] = 0;
				if
				:: SLOTS == 2 -> interval[lane * SLOTS + SLOTS - 1] = 0
				:: else -> skip
				fi
			}
#endif
		:: break
		fi
	:: break
	od
}

/* A store buffer becomes visible at any time, in its order. */
proctype Drain(byte me)
{
	mtype what;
	byte which, value;

end:	do
	:: atomic {
		buffer[me] ? what, which, value ->
		if
		:: what == PUBLISH ->
			assert(published[which] == value);
			published[which]++
		:: what == AVAILABLE -> available[which] = value
		:: what == HOLDER -> handed[which] = value
		:: what == LANE_FREE -> lane_free[which] = 1
		fi
	   }
	od
}

init
{
	byte i = 0;

	atomic {
#ifdef DIRECT
		available[0] = 1;
#if BLOCKS == 2
		available[1] = THREADS;
#endif
#else
		available[0] = FREE_FOR_ALL;
#if BLOCKS == 2
		available[1] = FREE_FOR_ALL;
#endif
#endif
		i = THREADS + 1;
		do
		:: i <= LANES -> lane_free[i] = 1; i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < THREADS -> run Thread(i); run Drain(i); i++
		:: else -> break
		od
	}
}
