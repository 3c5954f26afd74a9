/**
 * Credentials files of svc that other users can read or have written.
 *
 * @module-tag slow
 */
import { chmodSync, readFileSync, statSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { RecordingServer } from '../../testing/servers/recording-server.ts'
import { argv } from '../argv.ts'
import { CLIENTS, type Environment, run } from '../harness.ts'
import { storedSession } from './stored-sessions.ts'

/** The short run has one mode that others can read and one that others can write. */
const MODES =
  process.env.SVC_TEST_LONG === '1' ? ['0644', '0640', '0620', '0666'] : ['0640', '0620']

let server: RecordingServer
beforeEach(async () => {
  server = await RecordingServer.start(() => ({ status: 404, body: '{}' }))
})
afterEach(() => server[Symbol.dispose]())

describe.each(CLIENTS)('$build', ({ command, needs }) => {
  const svc = (args: readonly string[], environment: Environment) =>
    run(argv`${command} ${args}`, { environment: { ...needs, ...environment } })

  test.each(MODES)('a credentials file of mode %s gets the mode 0600 again', async (mode) => {
    using session = storedSession({ authentication: server.origin() })
    chmodSync(session.credentials, Number.parseInt(mode, 8))
    const first = await svc(argv`auth status --json`, session.environment)
    expect(first.stderr).toContain(`${session.credentials} was open to other users`)
    expect(first.stderr).toContain(`(mode ${mode})`)
    expect(JSON.parse(first.stdout)).toMatchObject({ loggedIn: true })
    expect(statSync(session.credentials).mode & 0o777).toBe(0o600)
    const second = await svc(argv`auth status`, session.environment)
    expect(second.stderr).toBe('')
  })

  test.each(['authentication', 'management'] as const)(
    'an %s origin in the file that --url would reject receives nothing',
    async (kind) => {
      for (const origin of ['http://evil.test', 'http://127.0.0.1.evil.test:3220']) {
        const origins = { authentication: server.origin(), management: server.origin() }
        using session = storedSession({ ...origins, [kind]: origin })
        const before = readFileSync(session.credentials)
        const result = await svc(argv`whoami`, session.environment)
        expect(result.stderr).toContain('CLIENT_ORIGIN_INVALID')
        expect(result.stderr).toContain(`${session.credentials} names ${origin}`)
        expect(result.status).toBe(2)
        expect(readFileSync(session.credentials)).toEqual(before)
      }
      expect(server.requests).toEqual([])
    },
  )

  test('a loopback origin in the file receives nothing once that is disallowed', async () => {
    using session = storedSession({ authentication: server.origin() })
    const { SVC_ALLOW_LOOPBACK_HTTP: _, ...environment } = session.environment
    const result = await svc(argv`whoami`, environment)
    expect(result.stderr).toContain('SVC_ALLOW_LOOPBACK_HTTP=true')
    expect(server.requests).toEqual([])
  })
})
