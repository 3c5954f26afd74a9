/**
 * Goal: after a kill at any moment both names are a whole executable, and the next run finishes.
 * Method: a process that kills itself before its N-th change of a file, for every N, and one that
 * is killed by each program that it runs.
 *
 * @module-tag slow
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { NEW, OLD, UpgradeSite } from '../../../testing/client/upgrade-site.ts'

const DYING = join(import.meta.dirname, '../../../testing/dying/dying-upgrade.ts')
/** More than any upgrade needs; a test that found no end would prove nothing. */
const CHANGES_MAX = 60

/** Runs the upgrade of a site in a process of its own. */
function dying(site: UpgradeSite, number: number) {
  const key = join(site.root, 'key.pub')
  const args = [DYING, join(site.bin, 'svc'), site.release, key, String(number)]
  const { PATH = '', HOME = '' } = site.client.variables
  return spawnSync(process.execPath, args, { encoding: 'utf8', env: { PATH, HOME } })
}

/** Returns the version that an executable says as a program. */
function says(site: UpgradeSite, name: string): string {
  const { stdout } = spawnSync(join(site.bin, name), ['version'], { encoding: 'utf8' })
  return /svc-server (\S+)\+/.exec(stdout)?.[1] ?? `nothing: ${stdout}`
}

/** Kills a run at each change in turn, checks what is there, and lets the next run finish. */
async function killEverywhere(
  arrange: (site: UpgradeSite) => void,
  finished: (site: UpgradeSite) => Promise<void>,
): Promise<number> {
  for (let number = 1; number <= CHANGES_MAX; number++) {
    using site = new UpgradeSite()
    arrange(site)
    const { signal, stderr } = dying(site, number)
    for (const name of ['svc', 'svc-server']) {
      expect([OLD, NEW], `${name} after ${number}`).toContain(says(site, name))
    }
    if (signal === null) {
      expect(stderr).not.toContain('Error')
      return number - 1
    }
    expect(signal).toBe('SIGKILL')
    await finished(site)
  }
  return CHANGES_MAX
}

const done = { server: NEW, client: NEW, running: NEW, beside: ['svc-server.previous'] }

describe('a kill before each change of a file', () => {
  test('a killed upgrade leaves whole executables, and the next run ends it', async () => {
    const finish = async (site: UpgradeSite): Promise<void> => {
      const { exit, err } = await site.upgrade()
      expect([exit, err]).toEqual([0, expect.any(String)])
      expect(site.seen()).toEqual(done)
      expect(site.read('bin/.svc-install/receipt')).toContain(`version ${NEW}\n`)
      expect(site.read('bin/.svc-install/files/LICENSE')).toBe('new licence')
      expect(site.read('pages/man/man1/svc.1')).toBe(`man/man1/svc.1 of ${NEW}\n`)
    }
    const changes = await killEverywhere(() => {}, finish)
    expect(changes).toBeGreaterThan(15)
    expect(changes).toBeLessThan(CHANGES_MAX)
  })

  test('a killed rollback leaves whole executables, and the next run ends it', async () => {
    const arrange = (site: UpgradeSite): void => site.let(NEW, 'fails')
    const finish = async (site: UpgradeSite): Promise<void> => {
      const { exit } = await site.upgrade()
      expect(exit).toBe(1)
      expect(site.seen()).toMatchObject({ server: OLD, client: OLD, running: OLD })
      const beside = site.seen().beside.filter((name) => name !== 'svc-server.previous')
      expect(beside).toEqual([])
    }
    const changes = await killEverywhere(arrange, finish)
    expect(changes).toBeGreaterThan(12)
    expect(changes).toBeLessThan(CHANGES_MAX)
  })
})

/** Programs that an upgrade runs: the script, and the line of it that is replaced. */
const PROGRAMS: readonly (readonly [string, 'release' | 'systemctl', string])[] = [
  ['the check of the server', 'release', "else echo 'Report of"],
  ['the stop of the old version', 'systemctl', 'rm -f'],
  ['the start of the new version', 'systemctl', 'else echo "$version"'],
  ['the question whether it is ready', 'release', 'ready)\n    ['],
]

test.each(PROGRAMS)('a kill during %s is continued by the next run', async (_, script, line) => {
  using site = new UpgradeSite()
  const once = `if mkdir ${site.state}/killed 2>/dev/null; then kill -9 $PPID; fi`
  const words = line.split(/\s+/)
  const injected = (text: string): string => {
    expect(text).toContain(line)
    // The first word belongs to the syntax of the shell, but for a plain command.
    if (words[0] === 'rm') return text.replace(line, () => `${once}; ${line}`)
    return text.replace(line, () => `${words[0]} ${once}; ${words.slice(1).join(' ')}`)
  }
  if (script === 'release') {
    site.publish(NEW, { executable: injected(site.executable(NEW)) })
  } else {
    const path = join(site.root, 'tools/systemctl')
    writeFileSync(path, injected(readFileSync(path, 'utf8')))
  }
  expect(dying(site, 0).signal).toBe('SIGKILL')
  for (const name of ['svc', 'svc-server']) expect([OLD, NEW]).toContain(says(site, name))
  expect((await site.upgrade()).exit).toBe(0)
  expect(site.seen()).toEqual(done)
})
