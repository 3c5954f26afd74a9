import { expect, onTestFinished, test } from 'vitest'
import { FakePlatform, runReactions } from '../../../testing/app-client/fake-platform.ts'
import { Client } from '../client.ts'
import type { Query } from '../references.ts'

const list = { kind: 'query', name: 'm.list', arguments: {} } as Query<
  Record<string, never>,
  null,
  never
>

test('a connection is waiting from the loss of the network until it is back', async () => {
  const platform = new FakePlatform()
  const client = new Client({ url: 'http://a.test', applicationKey: 'k', target: 't' }, platform)
  onTestFinished(() => client.close())
  client.watch(list, {}, () => undefined)
  await runReactions()
  platform.socket.accept()
  expect(client.connection.current()).toMatchObject({ status: 'connected', error: null })
  platform.loseNetwork()
  const unreachable = { code: 'CLIENT_SERVER_UNREACHABLE', retryable: true }
  expect(client.connection.current()).toMatchObject({ status: 'waiting', error: unreachable })
  expect(platform.sockets[0]!.isClosed).toBe(true)
  await platform.pass(1_000)
  platform.socket.onclose?.({ code: 1006 })
  expect(client.connection.current()).toMatchObject({ status: 'waiting', error: unreachable })
  platform.wake()
  await runReactions()
  platform.socket.accept()
  expect(client.connection.current()).toMatchObject({ status: 'connected', error: null })
  expect(platform.socket.ofType('subscribe')).toHaveLength(1)
})

test('a connection that never opens reports its failure', async () => {
  const platform = new FakePlatform()
  const client = new Client({ url: 'http://a.test', applicationKey: 'k', target: 't' }, platform)
  onTestFinished(() => client.close())
  client.watch(list, {}, () => undefined)
  await runReactions()
  platform.socket.onclose?.({ code: 1006 })
  expect(client.connection.current()).toMatchObject({
    status: 'waiting',
    error: { code: 'CLIENT_SERVER_UNREACHABLE' },
  })
})
