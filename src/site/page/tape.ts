export function addTape(): void {}
