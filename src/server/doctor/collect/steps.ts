/** Splits the work of a run into steps, between which a running server serves calls. */

/** Looks at files take about 5 µs each. */
const ENTRIES_PER_STEP = 200

/** Lets calls of a running server be served between two steps. */
export const pause = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Runs `look` on each entry. */
export async function inSteps<T>(entries: readonly T[], look: (entry: T) => void): Promise<void> {
  for (const [at, entry] of entries.entries()) {
    if (at % ENTRIES_PER_STEP === ENTRIES_PER_STEP - 1) await pause()
    look(entry)
  }
}
