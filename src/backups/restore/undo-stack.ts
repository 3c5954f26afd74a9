/** Removes what a failed restore has written, the newest first. */
import { CODES, type TableCode } from '../../errors/codes.ts'
import { Fault, isFault } from '../../errors/fault.ts'

interface Written {
  /** Name of the thing that an operator has to remove if `undo` fails. */
  readonly what: string
  undo(): void | Promise<void>
}

export class UndoStack {
  readonly #written: Written[] = []

  /** Call it before the first thing is written. */
  add(written: Written): void {
    this.#written.push(written)
  }

  /** Returns the failure to report: it names what could not be removed. */
  async undo(failure: unknown): Promise<unknown> {
    const left: string[] = []
    for (const { what, undo } of this.#written.reverse()) {
      try {
        await undo()
      } catch {
        left.push(what)
      }
    }
    if (left.length === 0 || !isFault(failure)) return failure
    if (!Object.hasOwn(CODES, failure.code)) return failure
    const detail = `${failure.detail ?? ''}; remove before another restore: ${left.join(', ')}`
    return new Fault(failure.code as TableCode, { detail, cause: failure })
  }
}
