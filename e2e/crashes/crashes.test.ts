/**
 * kill -9 of the server at random moments under load: every acknowledged Mutation is durable, none
 * is applied twice, and every replay returns the original result.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type Application,
  application,
  mutation,
  operationId,
  query,
  string,
} from '../application.ts'

const KILLS = process.env.SVC_TEST_LONG === '1' ? 50 : 4
const WRITERS = 16
/** Maximum number of names that `channels.list` of the template returns. */
const LISTED_MAX = 100
let app: Application

beforeAll(async () => {
  app = await application()
})

afterAll(async () => {
  await app?.installation.dispose()
})

interface Sent {
  readonly operationId: string
  readonly name: string
  /** Null until the Mutation is acknowledged. */
  result: string | null
  sequence: string | null
}

test(`${KILLS} kills lose no acknowledged Mutation`, { timeout: 600_000 }, async () => {
  const sent: Sent[] = []
  const seed = Date.now()
  for (let kill = 0; kill < KILLS; kill++) {
    const stopAt = { now: false }
    const writers = Array.from({ length: WRITERS }, (_, i) => write(sent, `${kill}-${i}`, stopAt))
    const before = acknowledged(sent).length
    const count = 1 + ((seed * (kill + 7)) % 60)
    while (acknowledged(sent).length < before + count) await delay(1)
    app.server.kill()
    await app.server.ended
    stopAt.now = true
    await Promise.all(writers)
    await app.start()
  }
  expect(acknowledged(sent).length, `seed ${seed}`).toBeGreaterThanOrEqual(KILLS)
  for (const each of sent) {
    const replay = await mutation(app, create(each))
    expect(replay.status, `seed ${seed}: ${JSON.stringify(replay.body)}`).toBe(200)
    if (each.result === null) continue
    expect(replay.body.result.value).toBe(each.result)
    expect(replay.body.metadata).toMatchObject({ replayed: true, commitSequence: each.sequence })
  }
  // A name is unique, so a Mutation that was applied twice would have failed the second time.
  const names = await query(app, { function: 'channels.list' })
  expect(names.body.result.value).toHaveLength(Math.min(LISTED_MAX, sent.length))
})

const acknowledged = (sent: readonly Sent[]) => sent.filter(({ result }) => result !== null)

async function write(sent: Sent[], prefix: string, stop: { now: boolean }): Promise<void> {
  for (let i = 0; !stop.now; i++) {
    const each: Sent = {
      operationId: operationId(),
      name: `${prefix}-${i}`,
      result: null,
      sequence: null,
    }
    sent.push(each)
    try {
      const reply = await mutation(app, create(each))
      if (reply.status !== 200) continue
      each.result = reply.body.result.value
      each.sequence = reply.body.metadata.commitSequence
    } catch {
      // The server was killed. The replay will show whether the Mutation was committed.
      return
    }
  }
}

function create({ operationId, name }: Sent) {
  return {
    function: 'channels.create',
    arguments: { name: string(name), author: string('crash') },
    operationId,
  }
}
