import { describe, expect, it } from 'vitest'
import { isRequired, sourceNames, VARIABLES } from '../settings/variables.ts'
import { VERSION } from '../value/version.ts'
import { runServer } from './modes.ts'

async function run(...args: string[]) {
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
  return { exit: await runServer(args, {}, io), out, err }
}

describe('svc-server', () => {
  it.each([['--help'], ['-h'], ['serve', '--help']])(
    'svc-server prints its help for %s',
    async (...args) => {
      const { exit, out, err } = await run(...args)
      expect([exit, err]).toEqual([0, ''])
      for (const mode of [
        'check',
        'migrate',
        'ready',
        'recover-bootstrap',
        'recover-owner',
        'restore',
        'rotate-keys',
        'serve',
        'upgrade',
        'verify-storage',
        'version',
      ]) {
        expect(out).toMatch(new RegExp(`^  ${mode} `, 'm'))
      }
      for (const row of VARIABLES.filter(isRequired)) {
        for (const name of sourceNames({ ...row })) {
          if (!('legacy' in row) || !name.startsWith(row.legacy)) expect(out).toContain(name)
        }
      }
      expect(out).not.toContain('SERVICE_CONFIG_HOME')
    },
  )

  it('svc-server without a mode fails and prints its usage', async () => {
    const { exit, out, err } = await run()
    expect([exit, out]).toEqual([2, ''])
    expect(err).toContain('Usage: svc-server <mode>')
  })

  it.each([
    ['start'],
    ['toString'],
    [''],
    ['check', 'rk_at_v1_x'],
    ['--verbose', 'serve'],
    ['check', '--repair'],
    ['upgrade'],
    ['upgrade', '--json'],
    ['upgrade', '--check', '--check'],
    ['upgrade', '--check', '--repair'],
    ['migrate', '--check'],
    ['verify-storage', '--verbose'],
    ['verify-storage', '--repair', 'x'],
    ['serve', '--accept-loss'],
    ['serve', '--accept-loss', '-1'],
    ['serve', '--accept-loss', '9007199254740993'],
    ['check', '--accept-loss', '1'],
  ])('svc-server rejects the arguments %j without repeating them', async (...args) => {
    const { exit, out, err } = await run(...args)
    expect([exit, out]).toEqual([2, ''])
    expect(err).toContain('Usage: svc-server <mode>')
    expect(err).not.toMatch(/toString|rk_at|--verbose/)
  })

  it.each(['version', '--version', '-V'])('svc-server %s prints the version', async (name) => {
    const text = `svc-server ${VERSION} (${process.platform}-${process.arch})\n`
    expect(await run(name)).toEqual({ exit: 0, out: text, err: '' })
  })

  it.each([
    'check',
    'migrate',
    'ready',
    'recover-bootstrap',
    'recover-owner',
    'rotate-keys',
    'verify-storage',
  ])('svc-server %s without settings names the first missing variable', async (mode) => {
    const { exit, out, err } = await run(mode)
    expect([exit, out]).toEqual([78, ''])
    expect(err).toMatch(
      /^svc-server: SERVER_CONFIGURATION_MISSING: SERVICE_IDENTITY_DATABASE_URL: /,
    )
  })
})
