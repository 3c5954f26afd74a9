/** Names that people give: of operators and of their devices (wire decisions, section 2). */

export const NAME_LENGTH_MAX = 128
const CONTROL = /\p{Cc}/u

/** 1 to 128 code points, in NFC, without control characters or lone surrogates. */
export function isName(text: string): boolean {
  // Two UTF-16 units a code point at most, so a huge text is refused before it is walked.
  if (text.length === 0 || text.length > NAME_LENGTH_MAX * 2) return false
  if (!text.isWellFormed() || CONTROL.test(text) || text.normalize('NFC') !== text) return false
  return [...text].length <= NAME_LENGTH_MAX
}
