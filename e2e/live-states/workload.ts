/** Draws Mutations and Queries, which depend only on the seed and a position. */
import { SeededRandom } from '../serializability/random.ts'
import type { Change, WatchedQuery } from './history.ts'

export const CELLS = 8
const KEYS = 60
const ROOMS = 4
const POSITIONS = 100
/** No two changes draw the same rank, so that a rank is one position, as a cursor is. */
const RANKS_PER_POSITION = 1_000_000
const VALUES = 1_000_000
const CHANGES_MAX = 4
const ABORT_SHARE = 0.05
/** Bytes of padding: one message, or several. */
const PADDINGS = [1_000, 1_000, 1_000, 1_000, 1_000, 100_000]
/** Bytes of padding that fill the buffers of a socket after a few states. */
const PADDING_OF_SLOW = 3_000_000

const KINDS = ['put', 'put', 'put', 'set', 'add', 'move', 'remove', 'cell'] as const

export interface PlannedMutation {
  readonly changes: readonly Change[]
  /** True if the Mutation fails after its changes, so that it has no effect. */
  readonly aborts: boolean
}

export function plannedMutation(seed: number, number: number): PlannedMutation {
  const random = new SeededRandom(seed, number)
  const changes = Array.from({ length: 1 + random.below(CHANGES_MAX) }, (_, i) =>
    drawChange(random, number * CHANGES_MAX + i),
  )
  return { changes, aborts: random.chance(ABORT_SHARE) }
}

function drawChange(random: SeededRandom, number: number): Change {
  const kind = random.pick(KINDS)
  const key = random.below(kind === 'cell' ? CELLS : KEYS)
  const rank = random.below(POSITIONS) * RANKS_PER_POSITION + number
  return { kind, key, rank, room: random.below(ROOMS), value: random.below(VALUES) }
}

const QUERIES: readonly ((random: SeededRandom) => WatchedQuery)[] = [
  (random) => ({ name: 'cell', key: random.below(CELLS) }),
  (random) => ({ name: 'item', key: random.below(KEYS) }),
  () => ({ name: 'total' }),
  (random) => ({ name: 'count', room: random.below(ROOMS) }),
  wholeRoom,
  wholeRoom,
  wholeRoom,
  (random) => ({ name: 'padded', room: random.below(ROOMS), bytes: random.pick(PADDINGS) }),
  drawRange,
  drawRange,
  firstPage,
  firstPage,
]

export function drawQuery(random: SeededRandom): WatchedQuery {
  return random.pick(QUERIES)(random)
}

/** Draws a list that is long enough for patches. */
function wholeRoom(random: SeededRandom): WatchedQuery {
  return { name: 'walk', room: random.below(ROOMS), limit: 1 + random.below(5) }
}

function drawRange(random: SeededRandom): WatchedQuery {
  const from = random.below(POSITIONS) * RANKS_PER_POSITION
  return {
    name: 'range',
    room: random.below(ROOMS),
    from,
    to: from + (1 + random.below(POSITIONS / 2)) * RANKS_PER_POSITION,
    limit: 1 + random.below(30),
    order: random.pick(['asc', 'desc']),
  }
}

function firstPage(random: SeededRandom): WatchedQuery {
  const limit = 2 + random.below(4)
  return { name: 'page', room: random.below(ROOMS), after: null, until: null, limit }
}

/** Draws the Query of a subscriber that reads slowly. */
export function slowQuery(random: SeededRandom): WatchedQuery {
  return { name: 'padded', room: random.below(ROOMS), bytes: PADDING_OF_SLOW }
}
