/** Collects the anomalies of one history and the outcomes of its transactions. */
import type { Anomaly, AnomalyKind } from './anomalies.ts'
import { describe, type History } from './history.ts'

export class Verdict {
  readonly anomalies: Anomaly[] = []
  readonly #history: History
  /** Transactions of unknown outcome whose writes were read. */
  readonly #seen: ReadonlySet<number>

  constructor(history: History, seen: ReadonlySet<number>) {
    this.#history = history
    this.#seen = seen
  }

  isCommitted(by: number): boolean {
    return this.#history[by]!.outcome === 'committed' || this.#seen.has(by)
  }

  isAborted(by: number): boolean {
    return this.#history[by]!.outcome === 'aborted'
  }

  invoked(by: number): number {
    return this.#history[by]!.invoked
  }

  completed(by: number): number {
    return this.#history[by]!.completed
  }

  /** `members` are indexes in the history. */
  report(kind: AnomalyKind, members: readonly number[], what: string): void {
    const unique = [...new Set(members)]
    this.anomalies.push({
      kind,
      text: [`${kind}: ${what}`, ...unique.map((by) => `  ${describe(this.#history[by]!)}`)].join(
        '\n',
      ),
      transactions: unique.map((by) => this.#history[by]!.number),
    })
  }
}
