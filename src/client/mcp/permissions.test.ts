import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TestClient } from '../../../testing/client/test-client.ts'
import { realSystem } from '../../system/system.ts'
import { Output } from '../output.ts'
import { PERMISSION_SECONDS_MAX, PERMISSIONS_FILE, PermissionStore } from './permissions.ts'

const system = realSystem()
const HOUR = 3_600
const target = {
  managementOrigin: 'https://svc.example.com',
  environmentId: system.ids.make('env'),
}

let client: TestClient
/** Microseconds that the clock of the store is ahead. */
let aheadMicros = 0n
let warnings: string[]
beforeEach(() => {
  client = new TestClient()
  aheadMicros = 0n
  warnings = []
})
afterEach(() => client[Symbol.dispose]())

function store(): PermissionStore {
  const environment = client.environment({
    system: { ...system, nowMicros: () => system.nowMicros() + aheadMicros },
    stderr: { isTTY: false, write: async (text) => void warnings.push(text) },
  })
  return new PermissionStore({ environment, output: new Output(environment, { json: false }) })
}

const allowed = async (at = target) => [...(await store().of(at)).keys()]
const path = () => join(client.variables.SERVICE_CONFIG_HOME!, PERMISSIONS_FILE)

function writeFile(text: string): void {
  mkdirSync(dirname(path()), { recursive: true, mode: 0o700 })
  writeFileSync(path(), text, { mode: 0o600 })
}

describe('the file of permissions', () => {
  test('the file stands beside the credentials, and only its user can read it', async () => {
    await store().allow(target, ['data:read'], HOUR)
    expect(dirname(path())).toBe(dirname(client.credentials))
    expect(statSync(path()).mode & 0o777).toBe(0o600)
    expect(statSync(dirname(path())).mode & 0o777).toBe(0o700)
  })

  test('a file that others could have written gives nothing, and is removed', async () => {
    await store().allow(target, ['data:read'], HOUR)
    chmodSync(path(), 0o666)
    expect(await allowed()).toEqual([])
    expect(existsSync(path())).toBe(false)
    expect(warnings.join()).toContain('was open to other users (mode 0666)')
    expect(await allowed()).toEqual([])
  })

  test('a symbolic link is rejected, and its target stays as it is', async () => {
    await store().allow(target, ['data:read'], HOUR)
    const text = readFileSync(path(), 'utf8')
    const elsewhere = join(client.home, 'elsewhere.json')
    writeFileSync(elsewhere, text, { mode: 0o600 })
    const other = new TestClient()
    try {
      mkdirSync(other.variables.SERVICE_CONFIG_HOME!, { mode: 0o700 })
      symlinkSync(elsewhere, join(other.variables.SERVICE_CONFIG_HOME!, PERMISSIONS_FILE))
      client.variables.SERVICE_CONFIG_HOME = other.variables.SERVICE_CONFIG_HOME!
      await expect(allowed()).rejects.toMatchObject({ code: 'CLIENT_FILE_FAILED' })
      expect(readFileSync(elsewhere, 'utf8')).toBe(text)
    } finally {
      other[Symbol.dispose]()
    }
  })

  test.each([
    '',
    '[]',
    '{"version":2,"permissions":[]}',
    '{"version":1,"permissions":[{}]}',
    '{"version":1,"permissions":[],"more":1}',
  ])('a damaged file gives nothing: %s', async (text) => {
    writeFile(text)
    await expect(allowed()).rejects.toMatchObject({ code: 'CLIENT_FILE_FAILED' })
  })

  test('a row that no person can give, or that lasts too long, gives nothing', async () => {
    const now = system.nowMicros()
    const row = (capability: string, seconds: number) => ({
      ...target,
      capability,
      grantedAtMicros: String(now),
      endsAtMicros: String(now + BigInt(seconds) * 1_000_000n),
    })
    const permissions = [
      row('operators:manage', HOUR),
      row('data:read', PERMISSION_SECONDS_MAX + 1),
      row('data:write', PERMISSION_SECONDS_MAX),
    ]
    writeFile(JSON.stringify({ version: 1, permissions }))
    expect(await allowed()).toEqual(['data:write'])
  })
})

test('a permission is for one Environment of one server', async () => {
  await store().allow(target, ['data:read'], HOUR)
  expect(await allowed()).toEqual(['data:read'])
  expect(await allowed({ ...target, environmentId: system.ids.make('env') })).toEqual([])
  expect(await allowed({ ...target, managementOrigin: 'https://other.example.com' })).toEqual([])
  expect(await allowed({ ...target, managementOrigin: null } as never)).toEqual([])
})

test('a permission ends at its time, and the next change removes it from the file', async () => {
  await store().allow(target, ['data:read'], HOUR)
  aheadMicros = BigInt(HOUR) * 1_000_000n - 5_000_000n
  expect(await allowed()).toEqual(['data:read'])
  aheadMicros = BigInt(HOUR) * 1_000_000n
  expect(await allowed()).toEqual([])
  await store().allow(target, ['data:write'], HOUR)
  expect(readFileSync(path(), 'utf8')).not.toContain('data:read')
})

test('a second permission replaces the first one, and others stay', async () => {
  await store().allow(target, ['data:read', 'data:write'], HOUR)
  await store().allow(target, ['data:read'], 2 * HOUR)
  aheadMicros = BigInt(HOUR) * 1_000_000n
  expect(await allowed()).toEqual(['data:read'])
})

test('permissions are taken back, one or all of an Environment', async () => {
  const other = { ...target, environmentId: system.ids.make('env') }
  await store().allow(target, ['data:read', 'data:write', 'cron:activate'], HOUR)
  await store().allow(other, ['data:read'], HOUR)
  const removed = await store().deny(target, ['data:write'])
  expect(removed.map(({ capability }) => capability)).toEqual(['data:write'])
  expect(await allowed()).toEqual(['cron:activate', 'data:read'])
  expect(await store().deny(target, null)).toHaveLength(2)
  expect([await allowed(), await allowed(other)]).toEqual([[], ['data:read']])
})

test('changes of several processes at once are all kept', async () => {
  const capabilities = ['data:read', 'data:write', 'cron:activate', 'logs:prune'] as const
  await Promise.all(capabilities.map((each) => store().allow(target, [each], HOUR)))
  expect((await allowed()).toSorted()).toEqual([...capabilities].toSorted())
})
