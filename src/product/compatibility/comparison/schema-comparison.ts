/**
 * Decides from two schemas alone whether one reads what the other writes: whether for every
 * document that both can read, each document that the writer makes of it can be read. It errs on
 * the safe side only: where it refuses nothing, everything can be read.
 */
import { sha256 } from '../../../system/digests.ts'
import type { IndexManifest, TableManifest } from '../../../value/manifest.ts'
import type { ValueObject } from '../../../value/values.ts'
import { type Gap, type Newer, TOO_COMPLEX, UNIQUE_UNCHECKED } from './gaps.ts'
import { type Refusal, refusalOf } from './refusals.ts'
import { StepBudget, TooComplex } from './steps.ts'
import { isHarmless, sharedKey } from './unique-indexes.ts'
import { ValueCoverage } from './value-coverage.ts'
import { DocumentRules, WitnessSearch } from './witness-search.ts'

/**
 * Maximum steps of one comparison. A step blocks the event loop for about 100 ns. Without this
 * bound a publisher, who chooses all of the schemas, could block the server: unions inside unions
 * multiply the steps, and a request names up to 240 pairs of Releases.
 */
export const STEPS_MAX = 2_000_000
/** Maximum steps for all examples of one comparison; without an example a refusal stays one. */
const EXAMPLE_STEPS_MAX = 1_000_000
/** Maximum number of refusals of one table. */
const REFUSALS_MAX = 100
/** Steps of compiling the checks of a table for each character of its schema. */
const CHARACTER_STEPS = 0.5

export type Tables = ReadonlyMap<string, TableManifest>

/** The schemas of two Releases. */
export interface Pair {
  readonly reader: Tables
  readonly writer: Tables
  /** Which of them is the newer one: the words for a change depend on it. */
  readonly newer: Newer
}

/** Returns the tables that `next` lacks: their documents could no longer be read. */
export function removedTables(next: Tables, previous: Tables): string[] {
  return [...previous.keys()].filter((name) => !next.has(name))
}

/** The comparisons of one request, which share STEPS_MAX: what is left is refused. */
export class SchemaComparison {
  readonly #budget = new StepBudget(STEPS_MAX)
  readonly #exampleBudget = new StepBudget(EXAMPLE_STEPS_MAX)
  readonly #search = new WitnessSearch(this.#exampleBudget)
  readonly #valid = this.#coverage('valid')
  readonly #any = this.#coverage('any')
  readonly #digests = new Map<TableManifest, string>()
  readonly #rules = new Map<TableManifest, DocumentRules>()

  get steps(): number {
    return this.#budget.spent
  }

  /**
   * Returns why the reader may reject documents of the writer, in the order of the writer's tables.
   * Tables that only one of them has are never refused.
   */
  unreadable({ reader, writer, newer }: Pair): Refusal[] {
    return this.#eachTable({ reader, writer, newer }, (read, written) => {
      const gaps = [...this.#gaps(this.#valid, read, written)]
      return gaps.map((gap) => this.#refusal(gap, { read, written, newer }))
    })
  }

  /**
   * Returns why the writer may not write beside the reader: what `unreadable` returns, and the
   * unique indexes of the reader that writes of the writer may violate.
   */
  conflicts({ reader, writer, newer }: Pair): Refusal[] {
    return this.#eachTable({ reader, writer, newer }, (read, written) => {
      const gaps = [...this.#gaps(this.#valid, read, written)]
      const refusals = gaps.map((gap) => this.#refusal(gap, { read, written, newer }))
      return [...refusals, ...this.#uncheckedIndexes({ read, written, newer })]
    })
  }

  /**
   * Returns the tables of `next` in which code of `previous` may have stored, or left, a document
   * that `next` rejects. An earlier Release may have stored anything in fields that `previous` does
   * not declare.
   */
  uncertainTables(next: Tables, previous: Tables): string[] {
    return [...next].flatMap(([name, table]) => {
      const earlier = previous.get(name)
      if (earlier === undefined) return name
      if (this.#isSame(table, earlier)) return []
      try {
        const isCertain =
          this.#gaps(this.#any, table, earlier).next().done === true &&
          this.#violable(table, earlier, 'any').length === 0
        return isCertain ? [] : name
      } catch (error) {
        if (error instanceof TooComplex) return name
        throw error
      }
    })
  }

  /**
   * Returns whether code with `written` may store two documents with one key of a unique index of
   * `read`; with `hidden` of `any`, whether it or an earlier Release may have stored them.
   */
  mayViolate(
    index: IndexManifest,
    { read, written, hidden }: { hidden: 'valid' | 'any' } & Omit<TablePair, 'newer'>,
  ): boolean {
    try {
      return this.#violable({ ...read, indexes: [index] }, written, hidden).length > 0
    } catch (error) {
      if (error instanceof TooComplex) return true
      throw error
    }
  }

  #coverage(hidden: 'valid' | 'any'): ValueCoverage {
    return new ValueCoverage({ budget: this.#budget, search: this.#search, hidden })
  }

  #eachTable(
    { reader, writer, newer }: Pair,
    refusalsOf: (read: TableManifest, written: TableManifest) => Refusal[],
  ): Refusal[] {
    const refusals: Refusal[] = []
    for (const [name, written] of writer) {
      const read = reader.get(name)
      if (read === undefined || this.#isSame(read, written)) continue
      try {
        refusals.push(...refusalsOf(read, written).slice(0, REFUSALS_MAX))
      } catch (error) {
        if (!(error instanceof TooComplex)) throw error
        const gap: Gap = { path: '', change: TOO_COMPLEX, witness: () => null }
        return [...refusals, refusalOf({ table: name, gap, newer }, null)]
      }
    }
    return refusals
  }

  #gaps(coverage: ValueCoverage, read: TableManifest, written: TableManifest): Generator<Gap> {
    const reader = { fields: read.fields, isView: true }
    return coverage.fields(reader, { fields: written.fields, isView: true }, '')
  }

  #refusal(gap: Gap, pair: TablePair): Refusal {
    const { written, newer } = pair
    return refusalOf({ table: written.name, gap, newer }, this.#example(gap, pair))
  }

  /** Returns a document that the writer stores and the reader rejects, after it tried both. */
  #example(gap: Gap, { read, written }: TablePair): ValueObject | null {
    return this.#searched(() => {
      const witness = gap.witness()
      if (witness === null) return null
      const { before = null } = witness
      const [reader, writer] = [this.#rulesOf(read), this.#rulesOf(written)]
      const isBefore = (stored: ValueObject) => reader.reads(stored) && writer.reads(stored)
      if (before !== null && !isBefore(before as ValueObject)) return null
      const stored = writer.write(before as ValueObject | null, witness.written as ValueObject)
      return stored === null || reader.reads(stored) ? null : stored
    })
  }

  #uncheckedIndexes({ read, written, newer }: TablePair): Refusal[] {
    return this.#violable(read, written, 'valid').map((index) => {
      const gap: Gap = { path: `.${index.name}`, change: UNIQUE_UNCHECKED, witness: () => null }
      const document = this.#searched(() => {
        const writer = this.#rulesOf(written)
        return sharedKey(this.#search, { index, read, written, writer })
      })
      return refusalOf({ table: written.name, gap, newer }, document)
    })
  }

  /** Returns the unique indexes of the reader that writes of the writer may violate. */
  #violable(read: TableManifest, written: TableManifest, hidden: 'valid' | 'any'): IndexManifest[] {
    const checked = written.indexes.filter(({ unique }) => unique)
    const kept = new Map(checked.map((index) => [index.fields.join(), index]))
    return read.indexes.filter((index) => {
      if (!index.unique) return false
      const same = kept.get(index.fields.join())
      this.#budget.spend(2 * index.fields.length)
      const tables = { read, written, hidden }
      if (same !== undefined && isHarmless(index, { ...tables, checked: [same] })) return false
      for (const { fields } of checked) this.#budget.spend(fields.length)
      return !isHarmless(index, { ...tables, checked })
    })
  }

  /** Returns null if the search takes too many steps. */
  #searched<T>(search: () => T | null): T | null {
    try {
      return search()
    } catch (error) {
      if (error instanceof TooComplex) return null
      throw error
    }
  }

  #rulesOf(table: TableManifest): DocumentRules {
    let rules = this.#rules.get(table)
    if (rules === undefined) {
      this.#exampleBudget.spend(JSON.stringify(table).length * CHARACTER_STEPS)
      rules = new DocumentRules(table.fields)
      this.#rules.set(table, rules)
    }
    return rules
  }

  /** Compares digests: most tables of two Releases are equal, and native code hashes each once. */
  #isSame(one: TableManifest, other: TableManifest): boolean {
    return this.#digestOf(one) === this.#digestOf(other)
  }

  #digestOf(table: TableManifest): string {
    let digest = this.#digests.get(table)
    if (digest === undefined) {
      digest = sha256(JSON.stringify(table)).toString('latin1')
      this.#digests.set(table, digest)
    }
    return digest
  }
}

interface TablePair {
  readonly read: TableManifest
  readonly written: TableManifest
  readonly newer: Newer
}
