import { test } from 'vitest'
import { restartUnderCalls } from './restarts.ts'

test('20 restarts under 500 calls a second cost no caller an error', { timeout: 1_200_000 }, () =>
  restartUnderCalls({ restarts: 20, callsPerSecond: 500 }),
)
