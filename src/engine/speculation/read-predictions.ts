/**
 * Predicts the ranges that a Function reads first from its arguments, so that the server reads them
 * before the call and sends the documents with it. Most Functions that find documents through an
 * index compare its fields with arguments, or with constants. A prediction may be wrong: the code
 * asks for what it reads, and gets the predicted page only if it asks for exactly that range.
 */
import type { RangeRequest } from '../../runner/protocol/operations.ts'

/** Most ranges of a call that are predicted. */
const RANGES_MAX = 4
/** Consecutive calls whose ranges must follow from their arguments before any is predicted. */
const CONFIRMATIONS = 3
/** Calls that are not observed after a wrong prediction, or where nothing can be predicted. */
const UNOBSERVED_CALLS = 64

/** The source of a compared value: an argument by its name, or null for a constant. */
interface Source {
  readonly argument: string | null
  /** JSON of the constant; empty for an argument. */
  readonly text: string
}

interface Template {
  readonly request: RangeRequest
  /** The request without its compared values, as JSON. */
  readonly shape: string
  /** The sources of each compared value that all observed calls agree with, arguments first. */
  readonly sources: readonly (readonly Source[])[]
}

/** The ranges that one call read before it wrote. */
export class ObservedReads {
  readonly ranges: RangeRequest[] = []
  #isOpen = true

  add(request: RangeRequest): void {
    const isFirstPage = request.cursor === undefined && request.until === undefined
    if (this.#isOpen && isFirstPage && this.ranges.length < RANGES_MAX) this.ranges.push(request)
  }

  /** Ends the observation: later reads may depend on what the call wrote. */
  close(): void {
    this.#isOpen = false
  }
}

/** The predictions for one Function. */
export class ReadPredictions {
  #templates: readonly Template[] = []
  #confirmed = 0
  #unobserved = 0

  /** Returns what records the reads of the next call; null if they need not be known. */
  observer(): ObservedReads | null {
    if (this.#isActive) return null
    if (this.#unobserved === 0) return new ObservedReads()
    this.#unobserved -= 1
    return null
  }

  /** Returns the ranges that a call with these arguments, Stored JSON of an object, will read. */
  predict(argumentsText: string): readonly RangeRequest[] {
    if (!this.#isActive) return []
    const given = JSON.parse(argumentsText) as Record<string, unknown>
    const predicted: RangeRequest[] = []
    for (const { request, sources } of this.#templates) {
      const equal = sources.map(([source], i) =>
        source!.argument === null ? request.equal[i] : comparedValue(given[source!.argument]),
      )
      // An argument that is absent is compared with its default, or not at all.
      if (!equal.includes(undefined)) predicted.push({ ...request, equal })
    }
    return predicted
  }

  /** Learns from a call that ended without an error. */
  observe(argumentsText: string, { ranges }: ObservedReads): void {
    const texts = textsOf(argumentsText)
    const next = ranges.map((request, i) => confirmed(this.#templates[i], request, texts))
    const isConfirmed = next.length === this.#templates.length && !next.includes(null)
    if (isConfirmed && next.length > 0) {
      this.#templates = next as readonly Template[]
      this.#confirmed += 1
      return
    }
    const isFirst = this.#templates.length === 0
    this.#forget()
    if (!isFirst || ranges.length === 0) this.#unobserved = UNOBSERVED_CALLS
    else this.#templates = ranges.map((request) => templateOf(request, texts))
  }

  /** Ends the predictions after a range that the call did not read. */
  onUnread(): void {
    this.#forget()
    this.#unobserved = UNOBSERVED_CALLS
  }

  get #isActive(): boolean {
    return this.#confirmed >= CONFIRMATIONS
  }

  #forget(): void {
    this.#templates = []
    this.#confirmed = 0
  }
}

/** Returns the JSON of each argument by its name. */
function textsOf(argumentsText: string): ReadonlyMap<string, string> {
  const entries = Object.entries(JSON.parse(argumentsText) as Record<string, unknown>)
  return new Map(entries.map(([name, value]) => [name, JSON.stringify(comparedValue(value))]))
}

/** A document ID is a typed value among the arguments, and a string in the code. */
function comparedValue(value: unknown): unknown {
  const id = typeof value === 'object' && value !== null && '$d' in value ? value.$d : undefined
  return typeof id === 'string' ? id : value
}

function textOf({ argument, text }: Source, texts: ReadonlyMap<string, string>): string | null {
  return argument === null ? text : (texts.get(argument) ?? null)
}

function shapeOf(request: RangeRequest): string {
  return JSON.stringify({ ...request, equal: request.equal.length })
}

function templateOf(request: RangeRequest, texts: ReadonlyMap<string, string>): Template {
  const sources = request.equal.map((value): readonly Source[] => {
    const text = JSON.stringify(value)
    const names = [...texts].filter(([, each]) => each === text).map(([name]) => name)
    const named = names.map((argument) => ({ argument, text: '' }))
    return [...named, { argument: null, text }]
  })
  return { request, shape: shapeOf(request), sources }
}

/** Returns the template with the sources that also explain this request; null if one has none. */
function confirmed(
  template: Template | undefined,
  request: RangeRequest,
  texts: ReadonlyMap<string, string>,
): Template | null {
  if (template === undefined || template.shape !== shapeOf(request)) return null
  const sources = template.sources.map((candidates, i) => {
    const text = JSON.stringify(request.equal[i])
    return candidates.filter((source) => textOf(source, texts) === text)
  })
  return sources.some(({ length }) => length === 0) ? null : { ...template, sources }
}
