/**
 * @module-tag slow
 */
import { test } from 'vitest'
import { restartUnderCalls } from './restarts.ts'

/** Only a hang takes this long. */
const TIMEOUT = { timeout: 600_000 }

test('callers that retry as documented see no error of a server that restarts', TIMEOUT, () =>
  restartUnderCalls({ restarts: 3, callsPerSecond: 200 }),
)
