/**
 * Caches parsed Queries. Many clients send equal texts for equal Queries, so one that arrived twice
 * is kept in parsed form: the envelope of a tagged call, which depends neither on the caller nor on
 * the Release, and the arguments of a plain one, which depend on the Function. Both forms share one
 * part of the memory target.
 */
import { binaryString } from '../../system/binary-strings.ts'
import { DEFAULT_PLAN, type MemoryPlan } from '../../system/memory/memory-plan.ts'
import { SeenFilter } from '../../system/seen-filter.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { Value, ValueObject } from '../../value/values.ts'

export interface QueryEnvelope {
  readonly target: string
  readonly function: string
  readonly arguments: ValueObject
}

export interface PlainArguments {
  /** The Function whose validators read the arguments. */
  readonly definition: FunctionManifest
  readonly arguments: ValueObject
}

interface Forms {
  readonly tagged: QueryEnvelope
  readonly plain: PlainArguments
}

/** Bytes of a body that is kept. */
const KEPT_BYTES_MAX = 2_048
/** Slots of the filter for texts that arrived once. */
const SEEN_SLOTS = 16_384
/** Texts of an entry: its own, and three that the check of the arguments makes of it. */
const ENTRY_TEXTS = 4
/** Characters as which a value counts: an object with one field takes 200 bytes. */
const VALUE_CHARACTERS = 100

class Generation {
  readonly texts: { readonly [F in keyof Forms]: Map<string, Forms[F]> } = {
    tagged: new Map(),
    plain: new Map(),
  }
  characters = 0
}

/** Cache of two generations. */
export class ParsedQueries {
  #current = new Generation()
  #previous = new Generation()
  readonly #seen = new SeenFilter(SEEN_SLOTS)
  readonly #generationCharactersMax: number

  constructor({ parsedCharacters }: Pick<MemoryPlan, 'parsedCharacters'> = DEFAULT_PLAN) {
    this.#generationCharactersMax = Math.floor(parsedCharacters / 2)
  }

  find<F extends keyof Forms>(form: F, text: string): Forms[F] | undefined {
    const known = this.#current.texts[form].get(text)
    if (known !== undefined) return known
    const before = this.#previous.texts[form].get(text)
    if (before !== undefined) this.#add(form, text, before)
    return before
  }

  /** Keeps what a text means if the text arrived before. */
  keep<F extends keyof Forms>(form: F, text: string, parsed: Forms[F]): void {
    if (this.#seen.hasSeen(text)) this.#add(form, text, parsed)
  }

  #add<F extends keyof Forms>(form: F, text: string, parsed: Forms[F]): void {
    // Another Release may have read the text before, as arguments of the same size.
    if (!this.#current.texts[form].has(text)) {
      const values = countValues(parsed.arguments)
      const characters = ENTRY_TEXTS * text.length + VALUE_CHARACTERS * values
      if (characters > this.#generationCharactersMax) return
      if (this.#current.characters + characters > this.#generationCharactersMax) {
        this.#previous = this.#current
        this.#current = new Generation()
      }
      this.#current.characters += characters
    }
    this.#current.texts[form].set(text, parsed)
  }
}

/**
 * Returns the bytes as a text with one character for each, so that equal texts mean equal bytes;
 * null for a body that is too long to be kept.
 */
export function keptText(bytes: Uint8Array): string | null {
  return bytes.length > KEPT_BYTES_MAX ? null : binaryString(bytes)
}

/** Returns the number of values, the containers among them. */
function countValues(value: Value): number {
  if (value instanceof Map) return countAll((value as ValueObject).values())
  return Array.isArray(value) ? countAll(value) : 1
}

function countAll(values: Iterable<Value>): number {
  let count = 1
  for (const value of values) count += countValues(value)
  return count
}
