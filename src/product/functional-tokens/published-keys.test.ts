import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeKey } from '../../../build/testing/providers/identity-providers.ts'
import {
  type JwtIssuer,
  jwtIssuer,
  jwtProvider,
} from '../../../build/testing/providers/jwt-issuers.ts'
import { isFault } from '../../errors/fault.ts'
import { TOKEN_REJECTIONS } from '../../identity/jwt/rejections.ts'
import { ControlDatabase } from '../../storage/control/database.ts'
import { Keyring } from '../../storage/keyring.ts'
import { type MemoryLog, memoryLog } from '../../telemetry/log.ts'
import type { EnvironmentId } from '../../value/ids.ts'
import type { JwtProvider } from '../../value/jwt-providers.ts'
import { openJwtProviders } from './providers.ts'
import { FunctionalTokens } from './tokens.ts'

/*
 * Goal: keys of a provider outlive the process, and no longer than a day. Method: a real issuer and
 * a real control database; a restart closes it, and begins the monotonic clock anew.
 */

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const ENVIRONMENT = `env_${'0'.repeat(25)}1` as EnvironmentId
const KEYRING = new Keyring(
  {
    version: 1,
    keys: [{ id: 'first', key: new Uint8Array(32).fill(1), createdAtMicros: 0n }],
    active: 'first',
  },
  ENVIRONMENT,
)
const KEY_REJECTED = `functional token: ${TOKEN_REJECTIONS.key}`

/** The wall clock of the machine, and the one of the process. */
class Clocks {
  wall = 1_800_000_000_000
  monotonic = 0
  nowMillis = () => this.wall
  monotonicMillis = () => this.monotonic

  advance(millis: number): void {
    this.wall += millis
    this.monotonic += millis
  }
}

let directory: string
let users: JwtIssuer
let clocks: Clocks
let log: MemoryLog
let control: ControlDatabase
let tokens: FunctionalTokens

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'published-keys-'))
  users = await jwtIssuer()
  clocks = new Clocks()
  log = memoryLog()
  await start()
})

afterEach(async () => {
  control.close()
  rmSync(directory, { recursive: true, force: true })
  await users.close()
})

async function start(given: Partial<JwtProvider> = {}): Promise<void> {
  clocks.monotonic = 0
  control = ControlDatabase.open(join(directory, 'control.db'), 0n)
  const providers = [jwtProvider({ keys: { uri: users.jwksUri }, ...given })]
  const system = clocks
  tokens = new FunctionalTokens({
    providers: await openJwtProviders({ providers, control, system, log: log.log }),
    keyring: KEYRING,
    environmentId: ENVIRONMENT,
    system,
  })
}

async function restart(given: Partial<JwtProvider> = {}): Promise<void> {
  control.close()
  await start(given)
}

const sign = (header: object = {}) => users.sign(users.claims(clocks.wall), header)

/** What becomes of a token: a new one, unless another is given. */
async function outcome(token?: string): Promise<unknown> {
  try {
    await tokens.verify(token ?? (await sign()))
    return 'accepted'
  } catch (error) {
    if (!isFault(error)) return String(error)
    return error.code === 'FUNCTIONAL_TOKEN_INVALID' ? error.detail : error.code
  }
}

const goDown = () => {
  users.intercept = (response) => response.writeHead(500).end()
}
const events = () => log.records().map(({ event }) => event)

describe('published keys', () => {
  it('overlap while they are rotated, and the old one ends with the ten minutes', async () => {
    const before = await sign()
    expect(await outcome(before)).toBe('accepted')
    clocks.advance(30_000)
    const next = await makeKey('key-2')
    users.jwks = { keys: [users.key.jwk, next.jwk] }
    users.key = next
    const after = await sign()
    expect([await outcome(before), await outcome(after)]).toEqual(['accepted', 'accepted'])
    users.jwks = { keys: [next.jwk] }
    clocks.advance(10 * MINUTE)
    // A caller who was verified by a key that is withdrawn is rejected, known or not.
    expect([await outcome(before), await outcome(after)]).toEqual([KEY_REJECTED, 'accepted'])
  })

  it('are good for a day while the publisher does not answer', async () => {
    expect(await outcome()).toBe('accepted')
    goDown()
    clocks.advance(DAY - 1)
    expect(await outcome()).toBe('accepted')
    clocks.advance(1)
    expect(await outcome()).toBe('UNAVAILABLE')
    users.intercept = null
    clocks.advance(5_000)
    expect(await outcome()).toBe('accepted')
  })

  it('are good for no longer on a machine that slept', async () => {
    expect(await outcome()).toBe('accepted')
    goDown()
    // The clock of the process stands still in sleep.
    clocks.wall += DAY
    expect(await outcome()).toBe('UNAVAILABLE')
  })

  it('are good for no longer on a machine whose clock is set back', async () => {
    expect(await outcome()).toBe('accepted')
    goDown()
    clocks.advance(DAY - MINUTE)
    clocks.wall -= DAY / 2
    expect(await outcome()).toBe('accepted')
    clocks.advance(MINUTE)
    expect(await outcome()).toBe('UNAVAILABLE')
  })
})

describe('the keys of an earlier process', () => {
  beforeEach(async () => {
    expect(await outcome()).toBe('accepted')
  })

  it('verify tokens while their publisher is down', async () => {
    await users.close()
    await restart()
    expect(await outcome()).toBe('accepted')
  })

  it('count for a day since they were fetched, however often the server starts', async () => {
    goDown()
    for (const hours of [23, 0.5]) {
      clocks.advance(hours * 60 * MINUTE)
      await restart()
      expect(await outcome()).toBe('accepted')
    }
    clocks.advance(30 * MINUTE - 1)
    expect(await outcome()).toBe('accepted')
    clocks.advance(1)
    expect(await outcome()).toBe('UNAVAILABLE')
    await restart()
    expect(await outcome()).toBe('UNAVAILABLE')
  })

  it('count for no longer where the clock is set back later', async () => {
    goDown()
    clocks.advance(DAY - MINUTE)
    await restart()
    clocks.wall -= DAY / 2
    expect(await outcome()).toBe('accepted')
    clocks.advance(MINUTE)
    expect(await outcome()).toBe('UNAVAILABLE')
  })

  it('do not keep a publisher that answers from being asked', async () => {
    const withdrawn = await sign()
    users.key = await makeKey('key-2')
    users.jwks = { keys: [users.key.jwk] }
    await restart()
    expect(await outcome(withdrawn)).toBe(KEY_REJECTED)
    expect(await outcome()).toBe('accepted')
    expect(users.requests).toBe(2)
  })

  it('leave it open whether an unknown key is a new one while the publisher is down', async () => {
    goDown()
    await restart()
    const unknown = await sign({ kid: 'key-2' })
    expect([await outcome(unknown), await outcome(unknown)]).toEqual(['UNAVAILABLE', 'UNAVAILABLE'])
    expect(await outcome()).toBe('accepted')
  })

  it('do not count for another address, nor when the first one is configured again', async () => {
    goDown()
    await restart({ keys: { uri: `${users.jwksUri}?other` } })
    expect(await outcome()).toBe('UNAVAILABLE')
    await restart()
    expect(await outcome()).toBe('UNAVAILABLE')
  })

  it('do not count for another issuer', async () => {
    goDown()
    await restart({ issuer: 'https://other.test' })
    const claims = users.claims(clocks.wall, { iss: 'https://other.test' })
    expect(await outcome(await users.sign(claims))).toBe('UNAVAILABLE')
  })

  it('are those of the configured algorithms', async () => {
    goDown()
    await restart({ algorithms: ['ES384'] })
    expect(await outcome(await sign({ alg: 'ES384' }))).toBe('UNAVAILABLE')
  })

  it('do not count where they were fetched in the future', async () => {
    goDown()
    clocks.wall -= MINUTE
    await restart()
    expect(await outcome()).toBe('UNAVAILABLE')
  })

  it('are not used where they are no key set any more, and fetched again', async () => {
    control.transaction((tx) => tx.run('update published_keys set document = ?', Buffer.of(0)))
    goDown()
    await restart()
    expect(events()).toContain('keys.not_restored')
    expect(await outcome()).toBe('UNAVAILABLE')
    users.intercept = null
    clocks.advance(5_000)
    expect(await outcome()).toBe('accepted')
    goDown()
    await restart()
    expect(await outcome()).toBe('accepted')
  })
})

it('keys that cannot be stored are good for the process that fetched them', async () => {
  control.close()
  expect([await outcome(), await outcome()]).toEqual(['accepted', 'accepted'])
  expect(events()).toEqual(['keys.not_stored'])
})
