/**
 * The server as a process, configured for a real OpenID Provider and a managed source.
 *
 * @module-tag slow
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { TEST_PEPPER, type TestIdentity, testIdentity } from '../../testing/identity.ts'
import { providerFile } from '../../testing/providers/identity-providers.ts'
import {
  authorize,
  type OpenIdProvider,
  openIdProvider,
} from '../../testing/providers/oidc-providers.ts'
import { type ServerProcess, startServer } from '../../testing/servers/server-process.ts'
import { Login } from '../wire/identity/auth.ts'
import { ManagedGrants, OidcConfig } from '../wire/identity/oidc.ts'
import { read } from '../wire/reading/read.ts'
import type { Schema } from '../wire/schema.ts'

const TOKEN = 'canary-managed-enrollment-token-of-the-gateway'
let t: TestIdentity
let op: OpenIdProvider
let server: ServerProcess
let directory: string

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-oidc-'))
  t = await testIdentity({ empty: true })
  op = await openIdProvider()
  const executable = join(directory, 'svc-server')
  const main = join(import.meta.dirname, '../main.ts')
  writeFileSync(executable, `#!/bin/sh\nexec '${process.execPath}' '${main}' svc-server "$@"\n`)
  chmodSync(executable, 0o700)
  const path = join(directory, 'oidc.json')
  writeFileSync(path, JSON.stringify(providerFile(op.settings)), { mode: 0o600 })
  server = await startServer({
    executable,
    directory,
    environment: {
      PATH: process.env.PATH ?? '',
      SERVICE_IDENTITY_DATABASE_URL: t.url,
      SERVICE_PLATFORM_IDENTITY_PEPPER: TEST_PEPPER.reveal(),
      SERVICE_STATE_DIRECTORY: t.stateDirectory,
      SERVICE_MANAGEMENT_LISTEN: '127.0.0.1:0',
      SERVICE_PLATFORM_OIDC_CONFIG: path,
      SERVICE_PLATFORM_MANAGED_ENROLLMENT_TOKEN: TOKEN,
      SERVICE_PLATFORM_MANAGED_SOURCE_AUTHORITY: 'https://control.example.com',
    },
  })
})

afterEach(async () => {
  await server.stop()
  await op.close()
  await t.dispose()
  rmSync(directory, { recursive: true, force: true })
})

async function send<T>(
  schema: Schema<T>,
  [method, path]: readonly [string, string],
  headers: Record<string, string> = {},
  body?: object,
): Promise<readonly [number, T]> {
  const response = await fetch(server.management + path, {
    method,
    headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return [response.status, read(schema, await response.json(), 'PLATFORM_INTERNAL')]
}

test('the first owner logs in through the provider, and the gateway adds a grant', async () => {
  const [, config] = await send(OidcConfig, ['GET', '/v1/auth/oidc/config'])
  const tokens = [(await authorize(config)).access_token, (await authorize(config)).access_token]
  const code = readFileSync(t.codePath, 'utf8').trimEnd()
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const route = ['POST', '/v1/auth/oidc'] as const
  const [created, first] = await send(Login, route, bearer(tokens[0]!), { code })
  const [found, again] = await send(Login, route, bearer(tokens[1]!), {})
  expect([created, found]).toEqual([201, 200])
  expect(again.operator).toEqual(first.operator)
  expect(again.grants.map((grant) => grant.source)).toEqual(['bootstrap'])
  const scope = {
    kind: 'project',
    projectId: 'prj_00000000000000000000000001',
    environmentId: null,
  }
  const [status, applied] = await send(
    ManagedGrants,
    ['PUT', `/v1/auth/managed/operators/${first.operator.operatorId}/grants`],
    { 'service-managed-enrollment': `Bearer ${TOKEN}` },
    { sourceRevision: '18446744073709551615', grants: [{ scope, role: 'observer' }] },
  )
  expect([status, applied.applied]).toEqual([200, true])
  expect(await t.audit()).toEqual([
    'bootstrap.create',
    'bootstrap.consume',
    'session.create',
    'identity.link',
    'session.create',
    'identity.login',
    'grants.reconcile',
  ])
  const log = server.lines.join('\n')
  expect(log).toContain('server.ready')
  for (const secret of [...tokens, TOKEN, code, first.accessToken, first.refreshToken]) {
    expect(log).not.toContain(secret!.slice(-30))
  }
})
