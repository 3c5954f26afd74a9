import { readdirSync, statSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  APPLICATION,
  BASE,
  DIR,
  file,
  MANAGED,
  PEPPER,
  URL_OK,
} from '../../build/testing/environments/environments.ts'
import { OIDC_FILE } from '../../build/testing/environments/oidc-files.ts'
import { type Environment, ROWS } from '../../build/testing/environments/rows.ts'
import { makeKey } from '../../build/testing/providers/identity-providers.ts'
import { RECOVERY_PHRASE } from '../config/configuration.ts'
import { runServer } from './modes.ts'

/** Values that rules name themselves. */
const SPEAKABLE = ['true', 'required', RECOVERY_PHRASE]

async function check(environment: Environment) {
  let [out, err] = ['', '']
  const io = {
    out: (text: string) => {
      out += text
    },
    err: (text: string) => {
      err += text
    },
    errIsTerminal: false,
  }
  return { exit: await runServer(['check'], environment, io), out, err }
}

describe('svc-server check refuses', () => {
  it.each(ROWS)('%s: %s in one line without a value', async (_rule, code, name, given) => {
    const environment = { ...BASE, ...given }
    const { exit, out, err } = await check(environment)
    expect(exit).toBe(1)
    expect(out).toBe('')
    expect(err.startsWith(`svc-server: ${code}: ${name}: `)).toBe(true)
    expect(err.endsWith('.\n')).toBe(true)
    expect(err.slice(0, -1)).not.toMatch(/[\n\r]/)
    expect(err).not.toMatch(/canary/i)
    expect(err).not.toContain(PEPPER)
    for (const value of Object.values(environment)) {
      if (value && value.length > 1 && !SPEAKABLE.includes(value)) expect(err).not.toContain(value)
    }
  })
})

describe('svc-server check shows', () => {
  it('what would be served, aligned and without secrets', async () => {
    const origins = 'https://app.test,http://localhost:5173'
    const environment = {
      ...BASE,
      ...APPLICATION,
      SERVICE_PRODUCT_ALLOWED_ORIGINS: origins,
      SERVICE_PUBLIC_MANAGEMENT_URL: 'https://manage.test',
      SERVICE_MANAGEMENT_TLS_TERMINATED: 'true',
      SERVICE_PLATFORM_DATABASE_URL: URL_OK,
      SERVICE_RUNNER_SANDBOX: 'required',
      SERVICE_ACTION_ALLOWED_NETWORKS: '10.1.0.0/16',
    }
    expect(await check(environment)).toEqual({
      exit: 0,
      err: '',
      out: `The configuration is valid. \`svc-server serve\` would use:

  Management listener    127.0.0.1:3220 (TLS ends at a proxy before it)
  Public Management URL  https://manage.test
  Identity database      canary_db at canary-db.test:5433
  Identity pepper        [redacted]
  State directory        /var/lib/canary
  Identity provider      none
  Managed source         none
  Product root           /srv/canary
  Application listener   127.0.0.9:4567 (TLS ends at a proxy before it)
  Documents              canary_db at canary-db.test:5433
  Allowed origins        https://app.test, http://localhost:5173
  JWT providers          none: guests only
  Networks of Actions    public, 10.1.0.0/16
  Function sandbox       required: refuses to start where Functions cannot be contained
`,
    })
  })

  it('deprecated and misspelled names, never their values', async () => {
    const { SERVICE_IDENTITY_DATABASE_URL: _, ...rest } = BASE
    const { exit, out } = await check({
      ...rest,
      SERVICE_DATABASE_URL_FILE: file('database', URL_OK),
      SERVICE_MANAGMENT_LISTEN: 'secret-by-mistake',
    })
    expect(exit).toBe(0)
    expect(out).toContain('\nDeprecated name in use: SERVICE_DATABASE_URL_FILE\n')
    expect(out).toContain('\nNot a setting of this server: SERVICE_MANAGMENT_LISTEN\n')
    expect(out).not.toMatch(/secret-by-mistake|canary%40pw|canary@pw/)
  })

  it('that a proxy stands before an HTTPS address which the settings do not know of', async () => {
    const named = { ...BASE, SERVICE_PUBLIC_MANAGEMENT_URL: 'https://manage.test' }
    const advice = 'set SERVICE_MANAGEMENT_TLS_TERMINATED=true'
    const { exit, out } = await check(named)
    expect(exit).toBe(0)
    expect(out).toContain('127.0.0.1:3220 (loopback, plain)')
    expect(out).toContain(advice)
    const told = await check({ ...named, SERVICE_MANAGEMENT_TLS_TERMINATED: 'true' })
    expect(told.out).not.toContain(advice)
    const local = await check({ ...BASE, SERVICE_PUBLIC_MANAGEMENT_URL: 'http://127.0.0.1:3220' })
    expect(local.out).not.toContain(advice)
  })

  it('whose tokens say who a caller is, and that their keys fit', async () => {
    const about = { kind: 'user', issuer: 'https://idp.test', audience: 'a', algorithms: ['ES256'] }
    const fitting = { jwks: { keys: [(await makeKey('key-1')).jwk] } }
    const useless = { jwks: { keys: [(await makeKey('key-1', 'RS256')).jwk] } }
    const checked = (keys: object) => {
      const providers = [{ name: 'idp', ...about, ...keys }]
      file('auth.json', JSON.stringify({ version: 1, providers }))
      const environment = { SERVICE_PRODUCT_ROOT: DIR, SERVICE_PRODUCT_AUTH_CONFIG: 'auth.json' }
      return check({ ...BASE, ...environment })
    }
    expect((await checked(fitting)).out).toContain('idp (user, https://idp.test)\n')
    const { exit, err } = await checked(useless)
    expect(exit).toBe(1)
    expect(err).toMatch(/^svc-server: SERVER_CONFIGURATION_INVALID: SERVICE_PRODUCT_AUTH_CONFIG/)
    expect(err).toContain('provider idp: a key set with a key of its algorithms')
  })

  it('an identity provider and a managed source without connecting to either', async () => {
    const oidc = { SERVICE_PLATFORM_OIDC_CONFIG: file('provider.json', OIDC_FILE) }
    const { exit, out } = await check({ ...BASE, ...MANAGED, ...oidc })
    expect(exit).toBe(0)
    expect(out).toMatch(/Identity provider +https:\/\/canary\.test\/tenant\n/)
    expect(out).toMatch(/Managed source +https:/)
    expect(out).not.toMatch(/\[object|canary-client/)
  })

  it('and touches nothing', async () => {
    const state = `${DIR}/state`
    const before = [readdirSync(DIR), statSync(DIR).mtimeMs]
    await check({ ...BASE, SERVICE_STATE_DIRECTORY: state, SERVICE_PRODUCT_ROOT: `${DIR}/root` })
    expect([readdirSync(DIR), statSync(DIR).mtimeMs]).toEqual(before)
  })
})
