/**
 * Tests plain calls whose Release changes between two requests: the validators of a Function decide
 * what its arguments mean.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { functionManifest, publishRelease, REQUEST_ID } from '../../../testing/products.ts'
import { promote } from '../../product/channels/promote.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { ValidatorJson } from '../../value/validators.ts'

const string = { type: 'string' } as const
const int64 = { type: 'int64' } as const
const echo = (value: ValidatorJson): FunctionManifest =>
  functionManifest('notes.echo', {
    clients: ['confidential'],
    arguments: { value },
    returns: { type: 'any' },
  })

let gateway: TestGateway
let bound: ReleaseId
beforeAll(async () => {
  gateway = await openTestGateway({
    functions: [echo(string)],
    tables: [],
    handlers: {
      'notes.echo': (_, { value }) => value,
      'notes.second': (_, { value }) => value,
    },
  })
  bound = gateway.releaseId
})
afterAll(() => gateway.close())

let releases = 0
async function release(...functions: readonly FunctionManifest[]): Promise<ReleaseId> {
  releases += 1
  const source = `release ${releases}`
  return (await publishRelease(gateway.harness, { functions, source })).releaseId
}

async function bind(releaseId: ReleaseId): Promise<void> {
  const { product, actor } = gateway.harness
  const to = { channel: 'production', releaseId, expectedReleaseId: bound, requestId: REQUEST_ID }
  await promote(product, actor, to)
  await product.serving.whenIdle()
  bound = releaseId
}

async function call(name: string, body: string, more: Readonly<Record<string, string>> = {}) {
  const headers = {
    'content-type': 'application/json',
    'x-service-key': gateway.key,
    'x-service-target': 'channel:production',
    ...more,
  }
  const url = `http://app.test/v1/functions/${name}`
  const response = await gateway.application.fetch(
    new Request(url, { method: 'POST', headers, body }),
  )
  const { result, error } = (await response.json()) as {
    readonly result?: unknown
    readonly error?: { readonly code: string }
  }
  return error === undefined ? result : error.code
}

async function thrice(name: string, body: string): Promise<readonly unknown[]> {
  return [await call(name, body), await call(name, body), await call(name, body)]
}

describe('a Query that arrives again', () => {
  test('each Release reads equal arguments by its own validators', async () => {
    const [texts, numbers] = [await release(echo(string)), await release(echo(int64))]
    const text = { type: 'string', value: '5' }
    const number = { type: 'int64', value: '5' }
    for (let times = 0; times < 2; times++) {
      await bind(texts)
      expect(await thrice('notes.echo', '{"value":"5"}')).toEqual([text, text, text])
      await bind(numbers)
      expect(await thrice('notes.echo', '{"value":"5"}')).toEqual([number, number, number])
    }
  })

  test('arguments that another Release accepted are rejected each time', async () => {
    const invalid = 'ARGUMENTS_INVALID'
    const [texts, numbers] = [await release(echo(string)), await release(echo(int64))]
    await bind(texts)
    expect(await thrice('notes.echo', '{"value":"x"}')).toHaveLength(3)
    await bind(numbers)
    expect(await thrice('notes.echo', '{"value":"x"}')).toEqual([invalid, invalid, invalid])
  })

  test('equal bodies of two Functions are two calls', async () => {
    const other = functionManifest('notes.second', {
      clients: ['confidential'],
      arguments: { value: int64 },
      returns: { type: 'any' },
    })
    await bind(await release(echo(string), other))
    for (let times = 0; times < 3; times++) {
      expect(await call('notes.echo', '{"value":"7"}')).toEqual({ type: 'string', value: '7' })
      expect(await call('notes.second', '{"value":"7"}')).toEqual({ type: 'int64', value: '7' })
    }
  })
})
