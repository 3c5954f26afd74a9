/** The files that a system keeps below `share`: manual pages and completions of both programs. */
import { spawnSync } from 'node:child_process'
import { completedClient } from '../../src/client/command-line/completed-program.ts'
import { COMMANDS } from '../../src/client/main.ts'
import { completedServer } from '../../src/server/command-line/completion.ts'
import { completionScript } from '../../src/shells/completion.ts'
import type { Entry } from '../archives.ts'
import { ROOT } from '../bundle.ts'
import { pageText } from './mdoc.ts'
import { manualPages } from './pages.ts'

/** The date of pages that are built outside of a checkout. */
const UNKNOWN_DATE = '1970-01-01'

/** Returns the date of the commit, so that the same sources give the same pages. */
export function sourceDate(): string {
  const result = spawnSync('git', ['-C', ROOT, 'log', '-1', '--format=%cs'], { encoding: 'utf8' })
  const date = result.status === 0 ? result.stdout.trim() : ''
  return /^\d{4}-\d\d-\d\d$/.test(date) ? date : UNKNOWN_DATE
}

/** Renders the files. The paths begin with `share/`. */
export function sharedFiles(date: string = sourceDate()): readonly Entry[] {
  const file = (path: string, text: string): Entry => ({
    path: `share/${path}`,
    bytes: Buffer.from(text),
    executable: false,
  })
  const pages = manualPages().map((page) =>
    file(`man/man${page.section}/${page.name}.${page.section}`, pageText(page, date)),
  )
  const programs = [completedClient(COMMANDS), completedServer()]
  const completions = programs.flatMap((program) => [
    file(`bash-completion/completions/${program.name}`, completionScript('bash', program)),
    file(`zsh/site-functions/_${program.name}`, completionScript('zsh', program)),
    file(`fish/vendor_completions.d/${program.name}.fish`, completionScript('fish', program)),
  ])
  return [...pages, ...completions]
}
