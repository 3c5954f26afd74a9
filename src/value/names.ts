/** Names that people give: of operators and of their devices (wire decisions, section 2). */

/** 1 to 128 code points without control characters. A name is also in NFC. */
export const NAME = /^[^\u0000-\u001f\u007f-\u009f]{1,128}$/u

/** 1 to 128 code points, in NFC, without control characters or lone surrogates. */
export function isName(text: string): boolean {
  return NAME.test(text) && text.isWellFormed() && text.normalize('NFC') === text
}
