/** Reads rows of a running server in steps, between which calls get their time. */
import type { ScanPage } from '../../documents/store.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { Throttle } from './throttle.ts'

/** The throttle and the end that all steps of a backup share. */
export interface Steps {
  readonly throttle: Throttle
  /** Looked at before each access to the server: its parts are closed after the signal. */
  readonly signal: AbortSignal | undefined
}

/** Documents of one page at most, and about the UTF-16 units of their texts. */
export const SCAN_PAGE = { rowsMax: 128, textUnitsMax: 64 * 1024 }
/** Rows of a step: calls wait for it. */
const STEP_ROWS = 4

/** Yields the rows, some of them in a step. A step ends when the caller has handled its rows. */
export async function* inSteps<T>(
  { throttle, signal }: Steps,
  rows: Iterable<T> | AsyncIterable<T>,
): AsyncGenerator<T> {
  let read = 0
  let end = throttle.begin()
  for await (const row of rows) {
    yield row
    read += 1
    if (read % STEP_ROWS > 0) continue
    await end()
    signal?.throwIfAborted()
    end = throttle.begin()
  }
  await end()
}

/** Yields the rows of all pages. The read of each is a step. */
export async function* scannedRows<T>(
  steps: Steps,
  scan: (after: string) => MaybePromise<ScanPage<T>>,
): AsyncGenerator<T> {
  for (let after: string | null = ''; after !== null; ) {
    steps.signal?.throwIfAborted()
    const from: string = after
    const page: ScanPage<T> = await steps.throttle.stepBeforeWait(() => scan(from))
    yield* inSteps(steps, page.rows)
    after = page.after
  }
}
