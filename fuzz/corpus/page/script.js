let a = 1;
//# sourceMappingURL=a.js.map
