/** The periods of a minute in which a server counts the rejections that it logs. */
import type { Application } from './application.ts'

const PERIOD_MILLIS = 60_000
/** The first period begins while the server starts. */
const START_MILLIS_MAX = 30_000

/** Returns a function that tells in how many periods the time since now may be. */
export function periodsSince({ server }: Application): () => number {
  const ready = server.lines.find((line) => line.includes('"server.ready"'))!
  const readyMillis = Date.parse(JSON.parse(ready).at)
  const served = () => Date.now() - readyMillis
  const begun = served()
  return () => {
    let periods = 1
    for (let end = PERIOD_MILLIS; end - START_MILLIS_MAX <= served(); end += PERIOD_MILLIS) {
      if (end >= begun) periods += 1
    }
    return periods
  }
}
