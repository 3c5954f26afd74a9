/** Operations that a malicious runner may request in the name of an Action. */
import { expect, test } from 'vitest'
import { TestSystem } from '../../system/system.ts'
import type { Invocation } from '../invocations/invocation.ts'
import { ActionHost } from './action-host.ts'
import type { ActionPort } from './ports.ts'

function hostOf() {
  const requests = { perform: () => new Promise<string>(() => {}) }
  const port = { system: new TestSystem(), requests } as unknown as ActionPort
  const definition = { name: 'f.x', kind: 'action', uses: { network: [], secrets: [] } }
  const invocation = { definition, deadline: 1_000 } as unknown as Invocation
  return new ActionHost(port, invocation, async () => 'null', {
    depth: 0,
    schedules: { created: 0 },
  })
}

const requestOf = (body: string) => {
  const head = { url: 'https://a.test/', method: 'PUT', headers: [], redirect: 'follow' } as const
  return { ...head, body }
}

test('waiting requests take no more memory than the bound', async () => {
  const host = hostOf()
  const body = 'A'.repeat(16 * 1024 * 1024)
  for (let i = 0; i < 3; i++) void host.operation(['fetch', i, requestOf(body)])
  await expect(host.operation(['fetch', 3, requestOf(body)])).rejects.toMatchObject({
    name: 'RangeError',
    message: expect.stringContaining('characters of arguments or bodies'),
  })
  host.end()
})

test('headers of waiting requests count like bodies', async () => {
  const host = hostOf()
  const headers = [['x', 'A'.repeat(16 * 1024 * 1024)]] as const
  const request = { ...requestOf(''), headers }
  for (let i = 0; i < 3; i++) void host.operation(['fetch', i, request])
  await expect(host.operation(['fetch', 3, request])).rejects.toMatchObject({ name: 'RangeError' })
  host.end()
})

test('timers are bounded, and end with the Action', async () => {
  const host = hostOf()
  for (let i = 0; i < 1_024; i++) void host.operation(['sleep', 600_000])
  expect(() => host.operation(['sleep', 1])).toThrow('at most 1024 timers')
  host.end()
})

test('an Action cannot read documents directly', () => {
  expect(() => hostOf().operation(['get', 'x_1'])).toThrow('ctx.db in an Action')
})
