import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { previousCommit, previousPrograms } from '../../testing/servers/previous-release.ts'
import { VERSION } from '../value/version.ts'
import { SETTING_CHANGES, type SettingChange } from './setting-changes.ts'
import { VARIABLES, type Variable } from './variables.ts'

const commit = previousCommit()

test.skipIf(commit === '')(
  'the changes of this version are the differences to the settings of the previous release',
  async () => {
    const { server } = previousPrograms(commit)
    const module = await import(join(dirname(server), 'src/settings/variables.ts'))
    const before = new Map((module.VARIABLES as Variable[]).map((row) => [row.name, row]))
    const now = new Map((VARIABLES as readonly Variable[]).map((row) => [row.name, row]))
    const changeOf = (name: string): SettingChange['change'] | null => {
      const [old, row] = [before.get(name), now.get(name)]
      if (old === undefined) return 'new'
      if (row === undefined) return 'gone'
      return old.default === row.default ? null : 'changed'
    }
    const names = [...new Set([...before.keys(), ...now.keys()])].sort()
    expect(
      SETTING_CHANGES.filter(({ version }) => version === VERSION).map(({ name, change }) => ({
        name,
        change,
      })),
    ).toEqual(
      names
        .map((name) => ({ name, change: changeOf(name) }))
        .filter(({ change }) => change !== null),
    )
  },
)
