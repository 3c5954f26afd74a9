/**
 * The first owner of a new installation, with the compiled server.
 *
 * @module-tag slow
 */
import { existsSync, readFileSync, statSync, unlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { argv } from '../argv.ts'
import {
  call,
  createInstallation,
  type Installation,
  loginAsOwner,
  run,
  SERVER,
  text,
} from '../harness.ts'

let installation: Installation
beforeEach(async () => {
  installation = await createInstallation()
})
afterEach(() => installation.dispose())

test('check validates the settings and changes nothing', async () => {
  const result = await run(argv`${SERVER} check`, { environment: installation.environment })
  expect(result.stderr).toBe('')
  expect(result.status).toBe(0)
  expect(existsSync(installation.codeFile)).toBe(false)
})

test('the server serves the shipped OpenAPI document without authentication', async () => {
  const server = await installation.start()
  const response = await fetch(`${server.management}/v1/openapi.json`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('application/json')
  expect(response.headers.get('cache-control')).toBe('public, max-age=300')
  const shipped = join(import.meta.dirname, '../../dist-config/openapi.json')
  expect(await response.text()).toBe(readFileSync(shipped, 'utf8'))
  await server.stop()
})

test('migrate can be repeated', async () => {
  for (let i = 0; i < 2; i++) {
    const result = await run(argv`${SERVER} migrate`, { environment: installation.environment })
    expect(result.stderr).toBe('')
    expect(result.status).toBe(0)
  }
})

test('the first code is private to the server user, works once, survives a restart', async () => {
  const first = await installation.start()
  expect(await call(first.management, 'GET', '/health/live')).toMatchObject({ status: 200 })
  expect(await call(first.management, 'GET', '/health/ready')).toMatchObject({
    status: 200,
    body: { status: 'ready' },
  })
  expect(statSync(installation.codeFile).mode & 0o777).toBe(0o600)
  expect(statSync(dirname(installation.codeFile)).mode & 0o777).toBe(0o700)
  const code = readFileSync(installation.codeFile, 'utf8')
  expect(await first.stop()).toBe(0)

  const second = await installation.start()
  expect(readFileSync(installation.codeFile, 'utf8')).toBe(code)
  const login = await loginAsOwner(installation, second)
  const token = text(login, 'accessToken')
  const me = await call(second.management, 'GET', '/v1/auth/me', { token })
  expect(me.status).toBe(200)
  expect(me.body).toMatchObject({ grants: [{ scope: { kind: 'installation' } }] })
  await expect(loginAsOwner(installation, second)).rejects.toThrow('the status 401')
  await second.stop()

  const third = await installation.start()
  expect(existsSync(installation.codeFile)).toBe(false)
  const again = await call(third.management, 'GET', '/v1/auth/me', { token })
  expect(again.status).toBe(200)
  expect(third.lines.join('\n')).not.toContain(code.trim())
})

test('a lost code file stops the server, and recovery replaces the code', async () => {
  const first = await installation.start()
  await first.stop()
  const lost = readFileSync(installation.codeFile, 'utf8').trim()
  unlinkSync(installation.codeFile)
  await expect(installation.start()).rejects.toThrow('SERVER_BOOTSTRAP_FILE_MISSING')

  const recover = (confirm: string) =>
    run(argv`${SERVER} recover-bootstrap`, {
      environment: { ...installation.environment, SERVICE_BOOTSTRAP_RECOVERY_CONFIRM: confirm },
    })
  const wrong = await recover('yes')
  expect(wrong.status).not.toBe(0)
  expect(wrong.stderr).toContain('SERVER_BOOTSTRAP_RECOVERY_CONFIRMATION_INVALID')
  expect((await recover('replace-lost-initial-owner-code')).status).toBe(0)

  const second = await installation.start()
  const body = { code: lost }
  const old = await call(second.management, 'POST', '/v1/auth/exchange', { body })
  expect(old.status).toBe(401)
  await loginAsOwner(installation, second)
  const late = await recover('replace-lost-initial-owner-code')
  expect(late.stderr).toContain('SERVER_BOOTSTRAP_ALREADY_COMPLETE')
})

test('a server without its database does not start and prints no secret', async () => {
  const url = 'postgres://someone:hunter2@127.0.0.1:1/nothing'
  const { SERVICE_IDENTITY_DATABASE_URL_FILE: _, ...rest } = installation.environment
  const result = await run(argv`${SERVER} serve`, {
    environment: { ...rest, SERVICE_IDENTITY_DATABASE_URL: url },
  })
  expect(result.status).not.toBe(0)
  expect(result.stderr).toContain('SERVER_PLATFORM_DATABASE_UNAVAILABLE')
  expect(result.stderr).not.toContain('hunter2')
})
