import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeKey } from '../../../testing/providers/identity-providers.ts'
import { type JwtIssuer, jwtIssuer, jwtProvider } from '../../../testing/providers/jwt-issuers.ts'
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
 * Goal: keys of a provider outlive the process, but are valid for a day at most. Method: a real
 * issuer and a real control database; a restart closes the database and resets the monotonic clock.
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

/** The wall clock of the machine and the monotonic clock of the process. */
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

/** Verifies a token, a new one by default; returns the outcome. */
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
  it('published keys overlap in a rotation, and the old one ends after ten minutes', async () => {
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
    // A token of a withdrawn key is rejected even if it was verified before.
    expect([await outcome(before), await outcome(after)]).toEqual([KEY_REJECTED, 'accepted'])
  })

  it('published keys are valid for a day while the publisher is down', async () => {
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

  it('published keys are valid for no longer than a day after a suspension', async () => {
    expect(await outcome()).toBe('accepted')
    goDown()
    // The monotonic clock stops while the machine is suspended.
    clocks.wall += DAY
    expect(await outcome()).toBe('UNAVAILABLE')
  })

  it('published keys are valid for no longer than a day if the clock is set back', async () => {
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

  it('stored keys verify tokens while their publisher is down', async () => {
    await users.close()
    await restart()
    expect(await outcome()).toBe('accepted')
  })

  it('stored keys are valid for a day after their fetch, even with restarts', async () => {
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

  it('stored keys are valid for no longer than a day if the clock is set back later', async () => {
    goDown()
    clocks.advance(DAY - MINUTE)
    await restart()
    clocks.wall -= DAY / 2
    expect(await outcome()).toBe('accepted')
    clocks.advance(MINUTE)
    expect(await outcome()).toBe('UNAVAILABLE')
  })

  it('stored keys are replaced by those of a reachable publisher', async () => {
    const withdrawn = await sign()
    users.key = await makeKey('key-2')
    users.jwks = { keys: [users.key.jwk] }
    await restart()
    expect(await outcome(withdrawn)).toBe(KEY_REJECTED)
    expect(await outcome()).toBe('accepted')
    expect(users.requests).toBe(2)
  })

  it('an unknown key, which may be new, is not rejected while the publisher is down', async () => {
    goDown()
    await restart()
    const unknown = await sign({ kid: 'key-2' })
    expect([await outcome(unknown), await outcome(unknown)]).toEqual(['UNAVAILABLE', 'UNAVAILABLE'])
    expect(await outcome()).toBe('accepted')
  })

  it('stored keys are dropped when another address is configured, even for a while', async () => {
    goDown()
    await restart({ keys: { uri: `${users.jwksUri}?other` } })
    expect(await outcome()).toBe('UNAVAILABLE')
    await restart()
    expect(await outcome()).toBe('UNAVAILABLE')
  })

  it('stored keys are not used for another issuer', async () => {
    goDown()
    await restart({ issuer: 'https://other.test' })
    const claims = users.claims(clocks.wall, { iss: 'https://other.test' })
    expect(await outcome(await users.sign(claims))).toBe('UNAVAILABLE')
  })

  it('stored keys are not used for another algorithm', async () => {
    goDown()
    await restart({ algorithms: ['ES384'] })
    expect(await outcome(await sign({ alg: 'ES384' }))).toBe('UNAVAILABLE')
  })

  it('stored keys are not used if their fetch is in the future', async () => {
    goDown()
    clocks.wall -= MINUTE
    await restart()
    expect(await outcome()).toBe('UNAVAILABLE')
  })

  it('keys are fetched again if the stored key set cannot be parsed', async () => {
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

it('keys that cannot be stored are used by the process that fetched them', async () => {
  control.close()
  expect([await outcome(), await outcome()]).toEqual(['accepted', 'accepted'])
  expect(events()).toEqual(['keys.not_stored'])
})
