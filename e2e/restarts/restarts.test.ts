import { test } from 'vitest'
import { restartUnderCalls } from './restarts.ts'

test('callers that retry as documented see no error of a server that restarts', async () => {
  await restartUnderCalls({ restarts: 3, callsPerSecond: 200 })
})
