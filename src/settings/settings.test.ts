import { symlinkSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  APPLICATION,
  BASE,
  DIR,
  file,
  MANAGED,
  PEPPER,
  ROOT,
  special,
  URL_OK,
} from '../../testing/environments/environments.ts'
import { type Environment, ROWS } from '../../testing/environments/rows.ts'
import { TLS } from '../../testing/environments/tls-rows.ts'
import { Fault } from '../errors/fault.ts'
import {
  OWNER_RECOVERY_PHRASE,
  PEPPER_CHANGE_PHRASE,
  parseSettings,
  RECOVERY_PHRASE,
  type SettingsMode,
  SUBJECT_PEPPER_CHANGE_PHRASE,
} from './settings.ts'
import { unreadNames } from './sources.ts'
import { sourceNames, VARIABLES } from './variables.ts'

const MODES = ['check', 'migrate', 'recover-bootstrap', 'recover-owner', 'serve'] as const
const CONFIRMED = {
  SERVICE_BOOTSTRAP_RECOVERY_CONFIRM: RECOVERY_PHRASE,
  SERVICE_OWNER_RECOVERY_CONFIRM: OWNER_RECOVERY_PHRASE,
}

function failure(environment: Environment, mode: SettingsMode): Fault {
  let failed: unknown
  try {
    parseSettings(environment, mode)
  } catch (error) {
    failed = error
  }
  expect(failed).toBeInstanceOf(Fault)
  return failed as Fault
}

describe('a broken setting ends every mode before it begins', () => {
  it.each(ROWS)('%s: %s', (_rule, code, name, given) => {
    const environment = { ...BASE, ...given }
    for (const mode of MODES) {
      const fault = failure(environment, mode)
      expect(fault.code).toBe(code)
      expect(fault.violations.map((violation) => violation.path).join(', ')).toBe(name)
      expect(fault.kind).toBe('setting')
      // The operating system's error, as a cause, would name the configured path.
      expect(fault.cause).toBeUndefined()
      const shown = `${fault.message}${fault.detail}${JSON.stringify(fault)}`
      expect(shown).not.toMatch(/canary/i)
      expect(shown).not.toContain(PEPPER)
    }
  })

  it('there is a row for every variable but those of recovery and of the client', () => {
    const named = new Set(ROWS.flatMap(([, , names]) => names.split(', ')))
    for (const row of VARIABLES) {
      if (row.required === 'recovery only' || row.required === 'client only') continue
      expect(named, row.name).toContain(row.name)
    }
  })
})

describe.each([
  [
    'recover-bootstrap',
    'SERVICE_BOOTSTRAP_RECOVERY_CONFIRM',
    RECOVERY_PHRASE,
    'SERVER_BOOTSTRAP_RECOVERY_CONFIRMATION_INVALID',
  ],
  [
    'recover-owner',
    'SERVICE_OWNER_RECOVERY_CONFIRM',
    OWNER_RECOVERY_PHRASE,
    'SERVER_OWNER_RECOVERY_CONFIRMATION_INVALID',
  ],
] as const)('%s', (mode, name, phrase, code) => {
  it.each([undefined, '', 'canary', `${phrase} `, phrase.toUpperCase()])(
    `${mode} needs the exact phrase, not %j`,
    (wrong) => {
      const fault = failure({ ...BASE, [name]: wrong }, mode)
      expect(fault.code).toBe(code)
      expect(fault.violations[0]?.path).toBe(name)
    },
  )

  it(`${mode} accepts the phrase, which no other mode looks at`, () => {
    parseSettings({ ...BASE, [name]: phrase }, mode)
    const wrong = { ...BASE, ...CONFIRMED, [name]: 'canary' }
    for (const other of MODES.filter((each) => each !== mode)) parseSettings(wrong, other)
  })
})

describe.each([
  ['SERVICE_PEPPER_CHANGE_CONFIRM', PEPPER_CHANGE_PHRASE, 'identity'],
  ['SERVICE_SUBJECT_PEPPER_CHANGE_CONFIRM', SUBJECT_PEPPER_CHANGE_PHRASE, 'oidc-subject'],
])('%s', (name, phrase, kind) => {
  it.each(['', 'canary', `${phrase} `, phrase.toUpperCase()])(
    'the confirmation is the exact phrase or unset, not %j',
    (wrong) => {
      const fault = failure({ ...BASE, [name]: wrong }, 'migrate')
      expect(fault.code).toBe('SERVER_CONFIGURATION_INVALID')
      expect(fault.violations[0]?.path).toBe(name)
    },
  )

  it(`${name} confirms its change in migrate, and in no other mode`, () => {
    const confirmed = (environment: Environment, mode: SettingsMode) =>
      parseSettings({ ...BASE, ...CONFIRMED, ...environment }, mode).confirmedPepperChanges
    expect(confirmed({ [name]: phrase }, 'migrate')).toEqual([kind])
    expect(confirmed({}, 'migrate')).toEqual([])
    for (const mode of MODES.filter((each) => each !== 'migrate')) {
      for (const value of [phrase, 'canary']) expect(confirmed({ [name]: value }, mode)).toEqual([])
    }
  })
})

describe('a valid environment', () => {
  it('a valid environment needs three settings and has documented defaults', () => {
    const configuration = parseSettings(BASE, 'serve')
    expect(configuration).toMatchObject({
      identityDatabase: { host: 'canary-db.test', port: 5433, name: 'canary_db' },
      stateDirectory: '/var/lib/canary',
      management: {
        listen: { host: '127.0.0.1', port: 3220, loopback: true },
        tlsTerminated: false,
        publicUrl: null,
      },
      oidc: null,
      managedSource: null,
      product: null,
      sandbox: 'preferred',
      deprecatedNames: [],
      exposedNames: [],
    })
    expect(configuration.identityDatabase.url.reveal()).toBe(URL_OK)
    expect(configuration.identityPepper.reveal()).toBe(PEPPER)
    expect(JSON.stringify(configuration)).not.toContain(PEPPER)
    expect(JSON.stringify(configuration)).not.toContain('canary%40pw')
  })

  it('a certificate opens listeners beyond loopback, and its key is never printed', () => {
    const listen = { SERVICE_MANAGEMENT_LISTEN: '0.0.0.0:443' }
    const { tls, management, product } = parseSettings({ ...BASE, ...TLS, ...listen }, 'serve')
    expect(management).toMatchObject({ tlsTerminated: false, listen: { port: 443 } })
    expect(product).toMatchObject({ applicationTlsTerminated: false })
    expect(tls?.pair?.names).toBe('DNS:canary.test')
    expect(tls?.pair?.key.reveal()).toContain('PRIVATE KEY')
    expect(JSON.stringify(tls)).not.toContain('PRIVATE KEY')
  })

  it('a certificate may be a symbolic link, as programs that renew it make one', () => {
    const link = special('live.pem', (path) => symlinkSync(TLS.SERVICE_TLS_CERTIFICATE_FILE, path))
    const settings = { ...BASE, ...TLS, SERVICE_TLS_CERTIFICATE_FILE: link }
    expect(parseSettings(settings, 'serve').tls?.paths.certificate).toBe(link)
  })

  it('a valid environment is frozen all the way down', () => {
    const configuration = parseSettings({ ...BASE, ...APPLICATION }, 'serve')
    const { management, product, identityDatabase, deprecatedNames } = configuration
    const parts = [configuration, management, management.listen, product, identityDatabase]
    for (const part of [...parts, product?.allowedOrigins, deprecatedNames]) {
      expect(Object.isFrozen(part)).toBe(true)
    }
  })

  it('a valid environment may have every setting', () => {
    const configuration = parseSettings(
      {
        ...BASE,
        ...APPLICATION,
        SERVICE_STATE_DIRECTORY: '/var//lib/canary/',
        SERVICE_MANAGEMENT_LISTEN: '[::]:0',
        SERVICE_MANAGEMENT_TLS_TERMINATED: 'true',
        SERVICE_PUBLIC_MANAGEMENT_URL: 'https://manage.test:8443',
        SERVICE_PRODUCT_ALLOWED_ORIGINS: 'https://app.test,http://localhost:5173',
        SERVICE_RUNNER_SANDBOX: 'required',
        SERVICE_ACTION_ALLOWED_NETWORKS: '10.1.0.0/16,fd00::/8',
        SERVICE_MEMORY_TARGET: '2048',
        SERVICE_REQUEST_MEMORY_MIB: '128',
        SERVICE_RESPONSE_MEMORY_MIB: '65536',
        SERVICE_REALTIME_CONNECTIONS_PER_PEER_MAX: '50',
        SERVICE_REALTIME_MEMORY_MIB: '512',
      },
      'serve',
    )
    expect(configuration).toMatchObject({
      memory: { targetMib: 2_048, requestMib: 128, responseMib: 65_536, realtimeMib: 512 },
      realtime: {
        connectionsMax: 20_000,
        connectionsPerCredentialMax: 10_000,
        connectionsPerPeerMax: 50,
        memoryBytesMax: 512 * 1024 * 1024,
      },
      stateDirectory: '/var/lib/canary',
      management: {
        listen: { host: '::', port: 0, loopback: false },
        tlsTerminated: true,
        publicUrl: 'https://manage.test:8443',
      },
      product: {
        root: '/srv/canary',
        actionNetworks: [{ text: '10.1.0.0/16' }, { text: 'fd00::/8' }],
        applicationListen: { host: '127.0.0.9', port: 4567, loopback: true },
        allowedOrigins: ['https://app.test', 'http://localhost:5173'],
        database: null,
        jwtProviders: [],
        storage: { freeFloorBytes: 512 * 1024 ** 2, s3: null },
      },
      sandbox: 'required',
    })
  })

  it('all secrets may be in files, with or without a trailing newline', () => {
    const { SERVICE_STATE_DIRECTORY } = BASE
    const configuration = parseSettings(
      {
        SERVICE_STATE_DIRECTORY,
        SERVICE_IDENTITY_DATABASE_URL_FILE: file('database-url', `${URL_OK}\n`),
        SERVICE_PLATFORM_IDENTITY_PEPPER_FILE: file('pepper', PEPPER),
      },
      'serve',
    )
    expect(configuration.identityDatabase.url.reveal()).toBe(URL_OK)
    expect(configuration.identityPepper.reveal()).toBe(PEPPER)
  })

  it('both managed settings are accepted, with a token of exactly 32 bytes', () => {
    const token = 'x'.repeat(32)
    const environment = { ...BASE, ...MANAGED, SERVICE_PLATFORM_MANAGED_ENROLLMENT_TOKEN: token }
    const { managedSource } = parseSettings(environment, 'migrate')
    expect(managedSource?.enrollmentToken.reveal()).toBe(token)
    expect(managedSource?.authority).toBe('https://canary.test')
  })

  it('64 origins are accepted', () => {
    const origins = Array.from({ length: 64 }, (_, i) => `https://a${i}.test`).join()
    const environment = { ...BASE, ...ROOT, SERVICE_PRODUCT_ALLOWED_ORIGINS: origins }
    expect(parseSettings(environment, 'serve').product?.allowedOrigins).toHaveLength(64)
  })

  it('every form of an origin that browsers send is accepted', () => {
    const origins = [
      'https://canary.test',
      'https://a-b.c_d.canary.test:8443',
      'https://xn--bcher-kva.test',
      'https://canary.test.',
      'http://localhost:5173',
      'http://192.0.2.1',
      'http://[2001:db8::1]:8080',
    ]
    const environment = { ...BASE, ...ROOT, SERVICE_PRODUCT_ALLOWED_ORIGINS: origins.join() }
    expect(parseSettings(environment, 'serve').product?.allowedOrigins).toEqual(origins)
  })

  it('an error names the entry of a list that is not an origin', () => {
    const origins = 'https://a.test,https://*.canary.test,https://b.test'
    const environment = { ...BASE, ...ROOT, SERVICE_PRODUCT_ALLOWED_ORIGINS: origins }
    expect(failure(environment, 'serve').violations[0]?.rule).toMatch(/^entry 2 to be an origin as/)
  })

  it('the origins of web views and extensions are accepted as they send them', () => {
    const origins = [
      'capacitor://localhost',
      'tauri://localhost',
      'chrome-extension://abcdefghijklmnopabcdefghijklmnop',
      'moz-extension://0e5ab3e6-2b9d-4d1c-8f0a-1d2c3b4a5f60',
      'my.app+x://a-b.test:8080',
    ]
    const environment = { ...BASE, ...ROOT, SERVICE_PRODUCT_ALLOWED_ORIGINS: origins.join() }
    expect(parseSettings(environment, 'serve').product?.allowedOrigins).toEqual(origins)
  })

  it.each([
    'file://',
    'file://localhost',
    'capacitor://',
    'capacitor:localhost',
    'capacitor://localhost/',
    'capacitor://localhost?x',
    'capacitor://localhost#x',
    'capacitor://a@localhost',
    'capacitor://localhost:',
    'capacitor://localhost:080',
    'capacitor://localhost:65536',
    'Capacitor://localhost',
    'capacitor://Localhost',
    'chrome-extension://*',
    '*://localhost',
    '1app://localhost',
    'wss://canary.test',
    'blob://canary',
    'about://blank',
    'https://canary.test:443',
    'http://canary.test:80',
    'https://canary.test:0',
    'https://canary.test:08443',
    'https://Canary.test',
    'HTTPS://canary.test',
    'https://canary.test/',
    'https://canary.test/app',
    'https://canary.test?x',
    'https://canary.test#x',
    'https://canary@a.test',
    'https://:canary@a.test',
    'https://*.canary.test',
    'https://*',
    'https://canary.*',
    'https://bücher.test',
    'https://xn--canary.test',
    'https://can$ary.test',
    'https://canary..test',
    `https://${'c'.repeat(64)}.test`,
    'http://127.1',
    'http://[0::1]',
    'null',
    'canary.test',
    '',
    ' https://canary.test',
  ])('an origin that no browser sends is rejected: %s', (origin) => {
    const environment = { ...BASE, ...ROOT, SERVICE_PRODUCT_ALLOWED_ORIGINS: origin }
    expect(failure(environment, 'serve').code).toBe('SERVER_CONFIGURATION_INVALID')
  })

  it.each([
    ['SERVICE_DATABASE_URL', URL_OK],
    ['SERVICE_DATABASE_URL_FILE', file('legacy-url', URL_OK)],
  ])('the deprecated name %s alone is accepted with a warning', (name, value) => {
    const { SERVICE_IDENTITY_DATABASE_URL: _, ...rest } = BASE
    const configuration = parseSettings({ ...rest, [name]: value }, 'serve')
    expect(configuration.identityDatabase.name).toBe('canary_db')
    expect(configuration.deprecatedNames).toEqual([name])
  })

  it.each(['SERVICE_PRODUCT_DATABASE_URL', 'SERVICE_PRODUCT_DATABASE_URL_FILE'])(
    '%s is a known name of the platform database',
    (name) => {
      const value = name.endsWith('_FILE') ? file('platform-url', URL_OK) : URL_OK
      const configuration = parseSettings({ ...BASE, ...ROOT, [name]: value }, 'serve')
      expect(configuration.product?.database?.host).toBe('canary-db.test')
      expect(configuration.deprecatedNames).toEqual([name])
    },
  )

  it('two listeners may share port 0, because the system separates them', () => {
    const shared = {
      SERVICE_MANAGEMENT_LISTEN: '127.0.0.1:0',
      SERVICE_APPLICATION_LISTEN: '127.0.0.1:0',
    }
    parseSettings({ ...BASE, ...APPLICATION, ...shared }, 'serve')
  })
})

describe('the memory target', () => {
  const memoryOf = (environment: Record<string, string>) =>
    parseSettings({ ...BASE, SERVICE_PRODUCT_ROOT: `${DIR}/product`, ...environment }, 'serve')
      .memory

  it('the memory target bounds what peers make the server hold', () => {
    expect(memoryOf({ SERVICE_MEMORY_TARGET: '2048', SERVICE_REQUEST_MEMORY_MIB: '300' })).toEqual({
      targetMib: 2_048,
      requestMib: 300,
      responseMib: 512,
      realtimeMib: 512,
    })
    expect(memoryOf({ SERVICE_MEMORY_TARGET: '256' })).toMatchObject({ responseMib: 128 })
  })

  it('the memory target has 128 MiB for the main process and for each application process', () => {
    const processes = (target: string) => ({
      SERVICE_APPLICATION_PROCESSES: '3',
      SERVICE_MEMORY_TARGET: target,
    })
    expect(memoryOf(processes('512')).targetMib).toBe(512)
    expect(() => memoryOf(processes('511'))).toThrow(
      expect.objectContaining({
        detail:
          'SERVICE_MEMORY_TARGET: a whole number of MiB, for 4 processes, from 512 to 1048576',
      }),
    )
  })
})

describe('the table of settings', () => {
  it('each default in the table of settings is accepted by the parser', () => {
    for (const row of VARIABLES) {
      if (!('default' in row)) continue
      const explicit = parseSettings({ ...BASE, [row.name]: row.default }, 'serve')
      expect(explicit).toEqual(parseSettings(BASE, 'serve'))
    }
  })

  it('the table of settings names every source once', () => {
    const names = VARIABLES.flatMap((row) => sourceNames(row))
    expect(new Set(names).size).toBe(names.length)
    expect(names).toHaveLength(69 + 9 + 2 * 2)
  })

  it('unknown SERVICE_ and OTEL_ names are reported', () => {
    const known = Object.fromEntries(
      VARIABLES.flatMap((row) => sourceNames(row)).map((n) => [n, '']),
    )
    const environment = {
      ...known,
      SERVICE_MANAGMENT_LISTEN: 'x',
      PATH: DIR,
      SERVICE_UNSET: undefined,
      OTEL_SDK_DISABLED: 'true',
    }
    expect(unreadNames(environment)).toEqual(['OTEL_SDK_DISABLED', 'SERVICE_MANAGMENT_LISTEN'])
  })
})
