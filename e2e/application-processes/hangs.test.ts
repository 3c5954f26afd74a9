/**
 * Application processes and a main process that stop without ending.
 *
 * @module-tag slow
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Application, application, createKey, int64 } from '../application.ts'
import { connectToAll, isRunning, processesOf } from './processes.ts'
import { writeRelease } from './workspace.ts'

const input = { number: int64(1) }
const read = { kind: 'query', function: 'seen.read', arguments: input } as const
const add = { kind: 'mutation', function: 'seen.add', arguments: input } as const

let app: Application
let key: string

beforeAll(async () => {
  app = await application((workspace) => writeRelease(workspace, 1), {
    SERVICE_APPLICATION_PROCESSES: '2',
  })
  ;({ key } = await createKey(app, {}))
})
afterAll(() => app?.installation.dispose())

const logged = (event: string) => app.server.lines.filter((line) => line.includes(event))

test('a process that hangs is replaced, and the other one answers meanwhile', async () => {
  const [hung, other] = await connectToAll(app, 1)
  const { applications, main } = processesOf(app)
  process.kill(hung!.pid, 'SIGSTOP')
  const lost = hung!.connection.call({ ...read, key })
  const ended = lost.then(
    () => 'answered',
    () => 'closed',
  )
  let value = 0
  while (isRunning(hung!.pid)) {
    const added = await other!.connection.call({ ...add, key })
    expect([added.status, added.body.result]).toEqual([200, int64(++value)])
    // A change of the control database is answered and visible too.
    const changed = await createKey(app, {})
    const seen = await other!.connection.call({ ...read, key: changed.key })
    expect([seen.status, seen.body.result]).toEqual([200, int64(value)])
  }
  expect(await ended).toBe('closed')
  await expect.poll(() => processesOf(app).applications.length).toBe(2)
  expect(processesOf(app).main).toBe(main)
  expect(applications).not.toEqual(processesOf(app).applications)
  expect(logged('server.application_process_hung')).toHaveLength(1)
  const all = await connectToAll(app, 1)
  for (const { connection } of all) {
    const seen = await connection.call({ ...read, key })
    expect([seen.status, seen.body.result]).toEqual([200, int64(value)])
  }
  for (const { connection } of [hung!, other!, ...all]) connection.close()
})

test('while the main process hangs Queries are answered, and a Mutation waits for it', async () => {
  const owned = await connectToAll(app, 2)
  const before = processesOf(app)
  const [value] = await Promise.all(
    owned.map(async ({ connection }) => (await connection.call({ ...read, key })).body.result),
  )
  process.kill(before.main, 'SIGSTOP')
  let isAnswered = false
  const [writer, ...readers] = owned
  const added = writer!.connection.call({ ...add, key }).finally(() => {
    isAnswered = true
  })
  try {
    for (let i = 0; i < 20; i++) {
      for (const { connection } of readers) {
        const seen = await connection.call({ ...read, key })
        expect([seen.status, seen.body.result]).toEqual([200, value])
      }
    }
    expect(isAnswered).toBe(false)
  } finally {
    process.kill(before.main, 'SIGCONT')
  }
  expect((await added).status).toBe(200)
  expect(processesOf(app).applications).toEqual(before.applications)
  for (const { connection } of owned) connection.close()
})

test('a process that hangs ends with the main process', async () => {
  const { main, applications, descendants } = processesOf(app)
  process.kill(applications[0]!, 'SIGSTOP')
  process.kill(main, 'SIGKILL')
  await app.server.ended
  await expect.poll(() => descendants.filter(isRunning)).toEqual([])
})
