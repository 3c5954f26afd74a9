/**
 * Checks the types of the code that `svc dev` serves, in a process of its own. Problems are
 * reported without any other effect, since the code is served already.
 */
import type { DevelopmentEvent } from '../../client/development/events.ts'
import type { Fault } from '../../errors/fault.ts'
import { CoalescingTask } from '../../system/concurrency.ts'
import type { StartTypeChecker, TypeChecker, TypeCheckInput } from '../type-check/type-check.ts'
import { formatProblem } from '../workspace/problems.ts'

export interface TypeReportOptions {
  /** Absolute real path of the Workspace. */
  readonly directory: string
  readonly start: StartTypeChecker
  readonly report: (event: DevelopmentEvent) => void
}

export class TypeReports {
  readonly #options: TypeReportOptions
  readonly #checks: CoalescingTask
  #checker: TypeChecker | null = null
  #newest: TypeCheckInput | null = null
  /** Details of the last report; empty without problems. */
  #reported = ''

  constructor(options: TypeReportOptions) {
    this.#options = options
    this.#checks = new CoalescingTask(
      () => this.#check(),
      (error) => this.#fail(error),
    )
  }

  /** Requests a check. Of several waiting requests only the newest is carried out. */
  check(input: TypeCheckInput): void {
    this.#newest = input
    this.#checks.start()
  }

  /** Ends the process. Resolves once no check is running. */
  async close(): Promise<void> {
    const closed = this.#checks.close()
    this.#checker?.close()
    await closed
  }

  async #check(): Promise<void> {
    if (this.#checks.isClosed) return
    const { directory, start, report } = this.#options
    this.#checker ??= start(directory)
    const { problems } = await this.#checker.check(this.#newest!)
    const details = problems.map(formatProblem)
    const text = details.join('\n')
    // A save after which the problems are the same is not reported.
    if (text === this.#reported) return
    this.#reported = text
    report({ event: 'types', details })
  }

  /** Reports the failure. The next save starts another process. */
  #fail(error: unknown): void {
    if (this.#checks.isClosed) return
    this.#checker?.close()
    this.#checker = null
    const { message, detail = message } = error as Partial<Fault>
    this.#options.report({ event: 'notice', message: `Types were not checked. ${detail}` })
  }
}
