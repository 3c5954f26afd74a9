/**
 * Runs fuzz tests: some hundred inputs in `npm test`, some thousand in a run of all tests, and a
 * million in the long run. Each input has a seed of its own, which a failure prints:
 * `SVC_SEED=<seed>` replays it.
 */
import { expect, test } from 'vitest'
import { inputs } from '../properties.ts'

const given = process.env.SVC_SEED
const isLong = process.env.SVC_TEST_LONG === '1'
const LONG_RUNS = 1_000_000
const SHORT_RUNS = inputs(3_000)
/** Number of inputs that are checked concurrently, if a check is asynchronous. */
const BATCH = 64
const TIMEOUT_MILLIS = 1_800_000

/**
 * `check` throws, or rejects, if an input shows a defect. `longRuns` is the number of inputs in the
 * long run, and `shortRuns` that in a run of all tests.
 */
export function fuzz(
  name: string,
  check: (random: Random) => unknown,
  shortRuns: number = SHORT_RUNS,
  longRuns: number = LONG_RUNS,
): void {
  const first = given === undefined ? Date.now() >>> 0 : Number(given) >>> 0
  const usual = isLong ? longRuns : shortRuns
  const runs = given === undefined ? usual : 1
  const runSeed = async (seed: number): Promise<void> => {
    try {
      await check(new Random(seed))
    } catch (error) {
      expect.fail(`SVC_SEED=${seed}: ${(error as Error).stack}`)
    }
  }
  test(
    `${name}: ${runs} inputs from seed ${first}`,
    async () => {
      for (let done = 0; done < runs; done += BATCH) {
        const seeds = Array.from(
          { length: Math.min(BATCH, runs - done) },
          (_, i) => first + done + i,
        )
        await Promise.all(seeds.map((seed) => runSeed(seed >>> 0)))
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
    TIMEOUT_MILLIS,
  )
}

/** A reproducible generator of random numbers: mulberry32. */
export class Random {
  #state: number

  constructor(seed: number) {
    // Mixes the seed, so that neighbouring seeds give unlike sequences.
    this.#state = Math.imul(seed ^ 0x9e37_79b9, 0x85eb_ca6b) >>> 0
  }

  /** Returns an integer from 0 to `bound`, exclusive. */
  below(bound: number): number {
    this.#state = (this.#state + 0x6d2b_79f5) >>> 0
    let t = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * bound)
  }

  chance(oneIn: number): boolean {
    return this.below(oneIn) === 0
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)]!
  }
}

/** Texts with a meaning for one of the parsers, or with one in other systems. */
const PIECES = [
  '{',
  '}',
  '[',
  ']',
  ':',
  ',',
  '"',
  '\\',
  '\\u0000',
  '\\ud800',
  '\\u005f',
  '//',
  '/*',
  ' ',
  'null',
  'true',
  'false',
  '0',
  '-0',
  '1e400',
  '1E-7',
  '9007199254740993',
  '01',
  '.5',
  'NaN',
  '"__proto__"',
  '"constructor"',
  '"toString"',
  '"type"',
  '"value"',
  '"key"',
  '"version"',
  '"int64"',
  '"float64"',
  '"bytes"',
  '"object"',
  '"array"',
  '"typed_id"',
  '"timestamp"',
  '"9223372036854775808"',
  '"-9223372036854775808"',
  '"7ff8000000000000"',
  '"AA=="',
  '"$i"',
  '\u0000',
  '\ufeff',
  '\ud800',
  '\udc00',
  '\u{1f600}',
  '\u2028',
  'é',
  '\n',
  '\t',
  '\u007f',
  '"channel:production"',
  '"environment:default"',
  '"release:"',
  '"workspace:../.."',
  '$$',
]

/** Applies a few edits anywhere: inserts pieces, and removes, repeats or moves ranges. */
export function mutatedText(random: Random, text: string): string {
  let result = text
  for (let edits = random.below(4) + 1; edits > 0; edits--) result = edited(random, result)
  return result
}

function edited(random: Random, text: string): string {
  const from = random.below(text.length + 1)
  const to = Math.min(text.length, from + random.below(random.chance(4) ? 64 : 4))
  const before = text.slice(0, from)
  const cut = text.slice(from, to)
  switch (random.below(6)) {
    case 0:
      return before + random.pick(PIECES) + text.slice(from)
    case 1:
      return before + random.pick(PIECES) + text.slice(to)
    case 2:
      return before + text.slice(to)
    case 3:
      return before + cut.repeat(random.below(4)) + text.slice(to)
    case 4:
      return before + String.fromCharCode(random.below(0x1_0000)) + text.slice(from + 1)
    default:
      return random.chance(200) ? before + deep(random) : before + text.slice(to) + cut
  }
}

function deep(random: Random): string {
  return random.pick(['[', '{"a":', '{"type":"array","value":[']).repeat(random.below(3_000))
}

/** Applies a few edits to bytes, which need not stay valid UTF-8. */
export function mutatedBytes(random: Random, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const result = new Uint8Array(bytes)
  for (let edits = random.below(4) + 1; edits > 0 && result.length > 0; edits--) {
    const at = random.below(result.length)
    if (random.chance(3)) result[at]! ^= 1 << random.below(8)
    else result[at] = random.pick([0, 0x22, 0x5b, 0x7b, 0x80, 0xc0, 0xed, 0xf8, 0xff])
  }
  const from = random.chance(8) ? random.below(result.length + 1) : 0
  const to = random.chance(8) ? random.below(result.length + 1) : result.length
  return result.slice(Math.min(from, to), Math.max(from, to))
}

type Part = Record<string, unknown>

/** Returns a copy of a JSON value in which parts are replaced, removed, moved or added. */
export function mutatedJson(random: Random, json: unknown): unknown {
  const root: Part = { root: structuredClone(json) }
  for (let edits = random.below(3) + 1; edits > 0; edits--) {
    const locations: [Part, string][] = []
    collect(root, locations)
    const [owner, key] = random.pick(locations)
    switch (random.below(5)) {
      case 0:
        // An array with a hole is not JSON.
        if (Array.isArray(owner)) owner.splice(Number(key), 1)
        else if (owner !== root) delete owner[key]
        break
      case 1:
        if (Array.isArray(owner)) owner.push(anyJson(random))
        else owner[random.pick(KEYS)] = anyJson(random)
        break
      case 2: {
        const [other, name] = random.pick(locations)
        owner[key] = structuredClone(other[name])
        break
      }
      default:
        owner[key] = anyJson(random)
    }
  }
  return root.root
}

function collect(part: Part, locations: [Part, string][]): void {
  for (const key of Object.keys(part)) {
    locations.push([part, key])
    const inner = part[key]
    if (typeof inner === 'object' && inner !== null) collect(inner as Part, locations)
  }
}

const KEYS = ['type', 'value', 'key', 'a', '$i', '$$', 'constructor', 'toString', '0', '', '\ud800']
const SCALARS: readonly unknown[] = [
  null,
  true,
  false,
  0,
  1,
  -1,
  0.5,
  2 ** 31,
  2 ** 32,
  2 ** 53 - 1,
  -(2 ** 53),
  1e308,
  5e-324,
  '',
  'a',
  '1',
  '-1',
  'null',
  '$i',
  'int64',
  '\ud800',
  '\u{1f600}',
  'x'.repeat(300),
]

/** Creates any small JSON value. */
export function anyJson(random: Random, depth = 0): unknown {
  const kind = depth > 3 ? 0 : random.below(6)
  if (kind === 1) return Array.from({ length: random.below(4) }, () => anyJson(random, depth + 1))
  if (kind !== 2) return random.pick(SCALARS)
  const entries = Array.from({ length: random.below(4) }, () => [
    random.pick(KEYS),
    anyJson(random, depth + 1),
  ])
  return Object.fromEntries(entries)
}
