/** The label of a Release in a choice: its ID, its time, and the message of its publisher. */
import { printable } from '../../client/visible-text.ts'
import type { Status } from '../../wire/status.ts'
import { timeText } from '../formats.ts'

const MESSAGE_CHARACTERS_MAX = 60
/** Characters of a time to the minute. */
const MINUTE_CHARACTERS = 16

export function releaseLabel(release: Status['releases'][number]): string {
  const { releaseId, createdAtMicros, provenance } = release
  const time = timeText(createdAtMicros).slice(0, MINUTE_CHARACTERS)
  const message = [...(provenance?.message ?? '')]
  const isCut = message.length > MESSAGE_CHARACTERS_MAX
  const head = message.slice(0, MESSAGE_CHARACTERS_MAX).join('')
  return [releaseId, time, printable(isCut ? `${head}…` : head)]
    .filter((part) => part !== '')
    .join(' · ')
}
