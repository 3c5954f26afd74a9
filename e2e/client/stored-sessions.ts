/** Creates a stored session of svc, as `svc login` would, for a server of a test. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../harness.ts'

export const ACCESS_TOKEN = `rk_at_v1_${'A'.repeat(43)}`
export const REFRESH_TOKEN = `rk_rt_v1_${'R'.repeat(96)}`

export interface StoredSession extends Disposable {
  /** Temporary directory; removed when the session is disposed of. */
  readonly directory: string
  readonly credentials: string
  /** The environment of svc. */
  readonly environment: Environment
}

export function storedSession(
  origins: { readonly authentication: string; readonly management?: string },
  fields: Readonly<Record<string, string>> = {},
): StoredSession {
  const directory = mkdtempSync(join(tmpdir(), 'svc-e2e-session-'))
  const config = join(directory, 'config')
  mkdirSync(config, { mode: 0o700 })
  const credentials = join(config, 'credentials-v1.json')
  const profile = {
    version: 2,
    authenticationOrigin: origins.authentication,
    managementOrigin: origins.management ?? origins.authentication,
    operatorId: 'opr_01ARZ3NDEKTSV4RRFFQ69G5FAV',
    operatorName: 'Ada',
    sessionId: 'ops_01ARZ3NDEKTSV4RRFFQ69G5FAV',
    accessToken: ACCESS_TOKEN,
    accessExpiresAtMicros: '9000000000000000',
    refreshToken: REFRESH_TOKEN,
    refreshExpiresAtMicros: '9000000000000000',
    ...fields,
  }
  writeFileSync(credentials, JSON.stringify(profile), { mode: 0o600 })
  return {
    directory,
    credentials,
    environment: { SERVICE_CONFIG_HOME: config, SVC_ALLOW_LOOPBACK_HTTP: 'true', HOME: directory },
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  }
}
