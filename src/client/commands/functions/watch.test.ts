import { afterEach, beforeEach, expect, it } from 'vitest'
import {
  type FakeRealtime,
  type Play,
  startFakeRealtime,
} from '../../../../testing/client/fake-realtime.ts'
import { APPLICATION_KEY, newId } from '../../../../testing/client/fake-server.ts'
import { catalogFunction, linkedCaller } from '../../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../../testing/client/test-client.ts'
import type { TableCode } from '../../../errors/codes.ts'
import { Fault } from '../../../errors/fault.ts'

let client: TestClient
let realtime: FakeRealtime | undefined

const FUNCTIONS = [
  catalogFunction('counter.read', 'query', {
    errors: { CLOSED: 'not_found' },
    arguments: { since: { type: 'timestamp' } },
  }),
  catalogFunction('counter.add', 'mutation'),
]
const RELEASE = newId.make('rel')

beforeEach(async () => {
  ;({ client } = await linkedCaller(FUNCTIONS))
})
afterEach(() => {
  realtime?.stop()
  realtime = undefined
})

function watch(play: Play | null, ...more: string[]) {
  realtime = startFakeRealtime(play)
  const [name = 'counter.read', ...rest] = more
  const where = ['--remote', '--root', 'root', '--url', realtime.origin, '--key-env', 'APP_KEY']
  const given = [name, '{"since":"5"}', ...where, '--target', 'channel:production', ...rest]
  return client.run('watch', ...given)
}

function state(subscriptionId: string, revision: number, value: number, sequence = revision) {
  return {
    type: 'state',
    subscriptionId,
    revision: String(revision),
    releaseId: RELEASE,
    snapshotSequence: String(sequence),
    result: { type: 'int64', value: String(value) },
  }
}

const AUTHENTICATED = {
  type: 'authenticated',
  sessionId: newId.make('req'),
  expiresAtMicros: null,
  maximumSubscriptions: 1000,
}

it('prints the first state and each change, also after a lost connection', async () => {
  let connections = 0
  client.onOutput = (text) => {
    if (text.includes('"snapshotSequence":"7"')) setImmediate(() => client.interrupt())
  }
  const ran = await watch(
    ({ type, subscriptionId }, peer) => {
      if (type === 'authenticate') peer.send(AUTHENTICATED)
      if (type !== 'subscribe') return
      connections += 1
      if (connections === 1) {
        peer.send(state(subscriptionId, 1, 10))
        peer.send(state(subscriptionId, 2, 11))
        peer.close()
        return
      }
      // What is printed already, then a change.
      peer.send(state(subscriptionId, 1, 11, 2))
      peer.send(state(subscriptionId, 2, 12, 7))
    },
    'counter.read',
    '--json',
  )
  const [first, second, third, ...rest] = ran.out.split('\n')
  const shared = { version: 1, atMicros: expect.stringMatching(/^\d+$/), releaseId: RELEASE }
  expect([first, second, third].map((line) => JSON.parse(line!))).toEqual([
    { ...shared, revision: '1', snapshotSequence: '1', result: 10 },
    { ...shared, revision: '2', snapshotSequence: '2', result: 11 },
    { ...shared, revision: '3', snapshotSequence: '7', result: 12 },
  ])
  expect(JSON.parse(rest.join('\n')).error.code).toBe('CLIENT_INTERRUPTED')
  expect(ran.exit).toBe(130)
  expect(ran.err).toMatch(/^Not connected \(.+\); trying again\.\nConnected again\.\n$/)
  expect(realtime!.messages[0]).toMatchObject({ applicationKey: APPLICATION_KEY })
  expect(realtime!.messages[1]).toMatchObject({
    function: 'counter.read',
    target: 'channel:production',
    arguments: { value: [{ key: 'since', value: { type: 'timestamp', value: '5' } }] },
  })
})

/** Answers the authentication, or with `of` the subscription, with an error. */
function failing(code: string, of: 'authenticate' | 'subscribe'): Play {
  return ({ type, subscriptionId = null }, peer) => {
    const error = { code, message: 'Said by the server.', retryable: false }
    if (type === of) peer.send({ type: 'error', subscriptionId, error })
    else if (type === 'authenticate') peer.send(AUTHENTICATED)
  }
}

const exitOf = (code: TableCode) => new Fault(code).exit

it('ends with the code, its exit code and a next step where key or target fail', async () => {
  const denied = await watch(failing('AUTH_POLICY_DENIED', 'authenticate'))
  expect([denied.exit, denied.out]).toEqual([exitOf('AUTH_POLICY_DENIED'), ''])
  expect(denied.err).toContain('Use a key whose scopes include realtime and query')
  realtime!.stop()
  const retired = await watch(failing('RELEASE_RETIRED', 'subscribe'))
  expect(retired.exit).toBe(exitOf('RELEASE_RETIRED'))
  expect(retired.err).toContain('Choose a target that is not retired.')
  realtime!.stop()
  // The Function declares the error as one of the kind of an unknown Function.
  const declared = await watch(failing('APP_CLOSED', 'subscribe'))
  expect(declared.exit).toBe(exitOf('FUNCTION_NOT_FOUND'))
  expect(declared.err).toContain('APP_CLOSED')
})

it('rejects what is no Query before it connects', async () => {
  const mutation = await watch(failing('INTERNAL', 'authenticate'), 'counter.add')
  expect([mutation.exit, realtime!.messages]).toEqual([2, []])
  expect(mutation.err).toContain(
    'counter.add is a Mutation, and only a Query can be watched. Call it with `svc call`.',
  )
  realtime!.stop()
  const unknown = await watch(failing('INTERNAL', 'authenticate'), 'counter.gone')
  expect(unknown.exit).toBe(exitOf('FUNCTION_NOT_FOUND'))
  expect(unknown.err).toContain('It has counter.read, counter.add.')
})
