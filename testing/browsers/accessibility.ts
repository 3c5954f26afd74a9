/** The checks of axe-core, for pages that a browser shows. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Tab } from './chromium.ts'

const AXE = join(import.meta.dirname, '../../node_modules/axe-core/axe.min.js')
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** Returns what axe finds in the page: the rule, and the elements that break it. */
export async function accessibilityFindings(tab: Tab): Promise<string[]> {
  if (!(await tab.evaluate<boolean>('window.axe !== undefined'))) {
    await tab.evaluate(`${readFileSync(AXE, 'utf8')};0`)
  }
  return tab.evaluate<string[]>(`axe
    .run(document, { runOnly: ${JSON.stringify(TAGS)} })
    .then(({ violations }) => violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) =>
        id + ': ' + html.slice(0, 160) + ' ' + failureSummary)))`)
}
