/** The ways forward and back that a story takes from one version to another. */
import { expect } from 'vitest'
import type { Json } from '../application.ts'
import { argv } from '../argv.ts'
import { run } from '../harness.ts'
import type { BackupPlaces, Story } from './story.ts'

/**
 * Serves with `before`, `after`, `before` and `after` again. The migration and each server are
 * killed. `after` only adds to the databases.
 */
export async function backAndForth(story: Story, before: string, after: string): Promise<void> {
  const { app } = story
  const seen = await story.observe()
  const check = await story.mode(after, ['upgrade', '--check', '--json'])
  expect([check.status, JSON.parse(check.stdout)]).toMatchObject([
    0,
    { outcome: 'ready', running: true, previousCanStart: true },
  ])
  app.server.kill()
  await app.server.ended
  // The identity database is the first one, and has nothing pending.
  expect(await story.killed(after, ['migrate'])).toContain('The identity database is at')
  await story.serve(before)
  expect(await story.observe()).toEqual(seen)
  await kill(story)
  const forward = await story.serve(after)
  expect(await story.observe()).toEqual(seen)
  expect(forward.lines.join('\n')).toContain('99.0.0')
  await story.write('by the later version')
  await story.plan('by the later version', 1)
  await kill(story)
  await story.serve(before)
  expect(await story.observe()).toEqual(seen)
  await story.write('after the way back')
  await story.plan('after the way back', 1)
  await kill(story)
  await story.serve(after)
  expect(await story.observe()).toEqual(seen)
  await story.runsOnce()
  await story.app.server.stop()
}

/**
 * Serves with `before` and with `after`, on whose databases `before` does not start and whose
 * backups `before` cannot restore. The way back is a copy of root and databases.
 */
export async function oneWayAndBack(story: Story, before: string, after: string): Promise<void> {
  const { app } = story
  const seen = await story.observe()
  const check = await story.mode(after, ['upgrade', '--check', '--json'])
  expect([check.status, JSON.parse(check.stdout)]).toMatchObject([
    4,
    { outcome: 'one-way', running: true, previousCanStart: false, backup: null },
  ])
  // The check has changed nothing.
  await kill(story)
  await story.serve(before)
  expect(await story.observe()).toEqual(seen)
  await app.server.stop()
  const restore = await story.backup()
  expect(await story.killed(after, ['migrate'])).toContain('The identity database went from')
  const back = await story.mode(before, ['serve'])
  expect(back.status).not.toBe(0)
  expect(back.stderr).toContain('is unknown to this program')
  await restore()
  await story.serve(before)
  expect(await story.observe()).toEqual(seen)
  await story.write('after the restore')
  await kill(story)
  await forwardThroughKills(story, after)
  await story.serve(after)
  expect(await story.observe()).toEqual(seen)
  await story.write('by this version')
  await story.plan('by this version', 1)
  await kill(story)
  await story.serve(after)
  expect(await story.observe()).toEqual(seen)
  await story.runsOnce()
  await app.server.stop()
}

/** Kills servers that migrate at growing times until one gets to its end. */
async function forwardThroughKills(story: Story, after: string): Promise<void> {
  for (let millis = 100; millis < 60_000; millis *= 3) {
    await story.killed(after, ['serve'], millis)
    const { stdout } = await story.mode(after, ['upgrade', '--check', '--json'])
    if (JSON.parse(stdout).outcome === 'ready') return
  }
  expect.unreachable('the migration did not get to its end')
}

/**
 * Serves with `before` and with `after`, which backs up before its migrations, then with `before`
 * on what it restores of that backup, and with `after` again. All but the last are killed.
 */
export async function oneWayWithBackup(
  story: Story,
  [before, after]: readonly [string, string],
  { directory, identity, to }: BackupPlaces,
): Promise<void> {
  const { app } = story
  const seen = await story.observe()
  const check = await story.mode(after, ['upgrade', '--check', '--json'])
  expect([check.status, JSON.parse(check.stdout)]).toMatchObject([
    4,
    { outcome: 'one-way', previousCanStart: false, backup: 'target' },
  ])
  await kill(story)
  // The identity database is migrated, after the backup.
  const killed = await story.killed(after, ['migrate'])
  expect(killed).toContain('The identity database went from')
  const [warning] = warningsIn(killed.split('\n'))
  expect(warning.databases).toEqual(['identity', 'control', 'documents', 'logs'])
  const interrupted = await story.mode(before, ['serve'])
  expect(interrupted.status).not.toBe(0)
  expect(interrupted.stderr).toContain('SERVER_PLATFORM_DATABASE_UNAVAILABLE')
  const forward = await story.serve(after)
  // What is left, if anything, needs no other backup.
  for (const { backupId } of warningsIn(forward.lines)) expect(backupId).toBe(warning.backupId)
  expect(await story.observe()).toEqual(seen)
  const added = [...story.added]
  await story.write('by the later version')
  await kill(story)
  const rejected = await story.mode(before, ['serve'])
  expect(rejected.status).not.toBe(0)
  // The way back: what the later version stored is lost, and nothing else.
  const args = argv`restore --from ${directory} --identity ${identity} --root ${to.root}
    --history ${warning.historyId} --to-time ${warning.restoreTime} --json`
  const { SERVICE_PRODUCT_ROOT: _, ...environment } = to.environment
  const restored = await run([before, ...args], { environment })
  expect(restored.status, restored.stderr).toBe(0)
  expect(JSON.parse(restored.stdout)).toMatchObject({ sequence: warning.sequence })
  story.added.splice(0, story.added.length, ...added)
  story.moveTo(to.environment)
  await story.serve(before)
  expect(await story.observe()).toEqual(seen)
  await story.write('after the way back')
  await story.plan('after the way back', 1)
  await kill(story)
  const again = await story.serve(after)
  expect(warningsIn(again.lines)).toEqual([
    expect.objectContaining({ backupId: expect.any(String) }),
  ])
  expect(await story.observe()).toEqual(seen)
  await story.runsOnce()
  await app.server.stop()
}

function warningsIn(lines: readonly string[]): Json[] {
  return lines
    .filter((line) => line.includes('database.migrates_one_way'))
    .map((line) => JSON.parse(line))
}

async function kill({ app }: Story): Promise<void> {
  app.server.kill()
  await app.server.ended
}
