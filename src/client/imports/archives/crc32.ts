/** CRC-32 of ZIP archives. `node:zlib` has one only from Node 22.2, and the client runs on 20. */

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  return crc
})

export class Crc32 {
  #crc = 0xffffffff

  update(bytes: Uint8Array): void {
    let crc = this.#crc
    for (const byte of bytes) crc = (crc >>> 8) ^ TABLE[(crc ^ byte) & 255]!
    this.#crc = crc
  }

  digest(): number {
    return (this.#crc ^ 0xffffffff) >>> 0
  }
}
